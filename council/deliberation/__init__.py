"""The Commandable Council: `admission` and `handler` (a command becomes a run), `equipment`, `task` (what a run does and leaves),
`deliberate` (rounds), `requests` (what agents ask for), `prompts`, `transcript`, `page`."""
