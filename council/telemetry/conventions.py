"""The names that spans carry: OpenTelemetry's semantic conventions for GenAI in version 1.41.1. Written out, for a
package that follows them would rename what dashboards look for. What is Council's own begins with `council.`."""

from __future__ import annotations

VERSION = "1.41.1"
SCHEMA_URL = f"https://opentelemetry.io/schemas/{VERSION}"

OPERATION = "gen_ai.operation.name"
INVOKE_WORKFLOW = "invoke_workflow"
INVOKE_AGENT = "invoke_agent"
CHAT = "chat"
EXECUTE_TOOL = "execute_tool"
EMBEDDINGS = "embeddings"

CONVERSATION_ID = "gen_ai.conversation.id"  # the run's id
WORKFLOW_NAME = "gen_ai.workflow.name"
AGENT_NAME = "gen_ai.agent.name"  # the agent's role
PROVIDER = "gen_ai.provider.name"
REQUEST_MODEL = "gen_ai.request.model"
EMBEDDINGS_DIMENSIONS = "gen_ai.embeddings.dimension.count"
REQUEST_MAX_TOKENS = "gen_ai.request.max_tokens"
REQUEST_TEMPERATURE = "gen_ai.request.temperature"
RESPONSE_MODEL = "gen_ai.response.model"
FINISH_REASONS = "gen_ai.response.finish_reasons"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"  # reasoning included, as in the receipt
CACHED_TOKENS = "gen_ai.usage.cache_read.input_tokens"  # part of the input
REASONING_TOKENS = "gen_ai.usage.reasoning.output_tokens"  # part of the output
TOOL_NAME = "gen_ai.tool.name"
TOOL_TYPE = "gen_ai.tool.type"
DATASTORE = "datastore"  # a tool that the agent's own side runs, to look things up
ERROR_TYPE = "error.type"

# Words of a run: only with `otel_content`.
SYSTEM_INSTRUCTIONS = "gen_ai.system_instructions"
INPUT_MESSAGES = "gen_ai.input.messages"
OUTPUT_MESSAGES = "gen_ai.output.messages"
TOOL_ARGUMENTS = "gen_ai.tool.call.arguments"
TOOL_RESULT = "gen_ai.tool.call.result"

ATTEMPT = "council.attempt"
STATUS = "council.status"
CALLS = "council.calls"
ROUND = "council.round"
PURPOSE = "council.purpose"
RETRY = "council.retry"  # an event of a chat span: one try failed, another follows
RETRY_ATTEMPT = "council.retry.attempt"
RETRY_WAIT_S = "council.retry.wait_s"

PROVIDERS = {"gemini": "gcp.gemini"}  # by our own name, where the conventions have another
