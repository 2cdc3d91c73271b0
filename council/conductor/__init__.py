"""The conductor: one front door that understands a request, routes its parts to agents, and puts their answers together.

Source: The Conductor, "Architecture Overview"; Kingdom, sections 1 to 3 and 5."""
