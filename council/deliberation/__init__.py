"""The Commandable Council: `handler` (a command becomes a run), `deliberate` (rounds), `prompts`, `transcript`, `page`."""
