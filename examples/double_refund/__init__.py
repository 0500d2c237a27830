"""The double refund: a payment API succeeds but answers too late, and the retry pays twice.

`agent` is the support agent with the bug and `agent_fixed` the one without; `fake_provider` speaks the
OpenAI chat API, `fake_payments` a payment API. `README.md` beside this file tells the story.
"""
