"""The one seam to a language model (`base`) and the models behind it (`gemini`, `openai_compatible`, `scripted`, `replay`,
`offline`). `retry`, `provider_limits` and `reply_limits` go around them; `structured` reads typed answers."""
