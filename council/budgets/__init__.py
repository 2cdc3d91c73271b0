"""Limits of spending, records of it, and a model that asks first.

A call's worst case is reserved before it is made and settled after it, in a log that survives a kill. A reservation without a
settlement was a call in flight, and is charged in full. The cost of the closing call is set aside at the start, so that a
crossed budget still yields an answer. An unknown price is unknown, never zero.

Seconds are those in which a run waits for its models: calls, their place in the provider's queue, the pauses between
attempts. Calls at the same time count once; a time for which the run is parked does not count.

Wraps a Model; neither the engine nor the models know of budgets.
"""
