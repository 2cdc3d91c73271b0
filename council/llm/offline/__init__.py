"""The offline engine: quotes lines and matches patterns, without a language model and without a judgement.

`offline_model` is the `Model`, `turns` and `extract` say what each reply holds; the others read, rank and check.
"""

from council.llm.offline.offline_model import OfflineModel, offline_reply
from council.llm.providers import Provider

__all__ = ["OfflineModel", "offline_reply", "provider"]

provider = Provider(lambda setup: OfflineModel(), local=True, summary="no language model: extracts and says so")
