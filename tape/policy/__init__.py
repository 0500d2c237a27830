"""The policy: one pure decision for each request, and the rules that it reads."""
