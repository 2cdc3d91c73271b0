"""Guards on texts. `untrusted`, `markdown`, `encodings`, `echoes`: text from outside, disarmed and fenced.
`guardrails` (over `verdict`, `boundary_table`, with a `second_opinion`) decline. `ministers` (over `python_code`,
`authority_claims`, `host_and_path_risk`) judge a proposed agent. All answer with a `verdict`."""
