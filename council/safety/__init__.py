"""Guards on texts. `untrusted`, `markdown`, `encodings`, `echoes`: text from outside, disarmed and fenced.
`guardrails` (over `laws`, `boundaries`, `scope`, with a `second_opinion`) decline. `ministers` (over `spec`,
`python_code`, `authority_claims`, `reach`) judge a proposed agent. All answer with a `verdict`."""
