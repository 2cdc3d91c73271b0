"""The one seam to a language model (`base`) and the models behind it: gemini, scripted, offline."""
