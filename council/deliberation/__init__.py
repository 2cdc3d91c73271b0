"""The Commandable Council: `system` (all that the house knows of it), `commands` and `admission` (a command becomes a run),
`equipment`, `task` (what a run does and leaves), `deliberate` (rounds), `requests` (what agents ask for), `prompts`,
`transcript`, `page`."""
