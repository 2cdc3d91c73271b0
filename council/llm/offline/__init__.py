"""The offline engine: quotes lines and matches patterns, without a language model and without a judgement.

`model` is the `Model`, `turns` and `extract` say what each reply holds; the others read, rank and check.
"""

from council.llm.offline.model import OfflineModel, offline_reply

__all__ = ["OfflineModel", "offline_reply"]
