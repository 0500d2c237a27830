"""Contracts: the agreed shape of requests and answers, and checks against it."""
