"""OpenTelemetry: a run as spans, after the GenAI conventions. Nothing of it is imported unless it is switched on
(`switch`); the engine, the models and the tools know nothing of it."""
