"""What a text may do. `untrusted`, `markdown`, `hidden`, `encodings`, `echoes`: text from outside, disarmed and fenced.
`guardrails` (over `laws`, `boundaries`, `scope`, with a `second_opinion`): what is declined. `ministers` (over `spec`,
`python_code`, `authority`, `reach`): what is thought of a proposed agent. All answer with a `verdict`."""
