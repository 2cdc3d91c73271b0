"""The one seam to a language model (`base`), the models behind it (`gemini`, `openai_compatible`, `scripted`, `replay`,
`offline`), what is wrapped around them (`retry`, `limits`, `fallback`, `json_mode`), and how typed answers are read
(`structured`)."""
