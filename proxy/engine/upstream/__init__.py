"""How an upstream is reached from a network that has a proxy of its own, and by which certificate it knows who asks.

Nothing here decides whether something may leave: the guard does (`egress_guard.py`), before any of this is asked.
"""

from .client_certificates import ClientCertificates
from .dial_through_proxy import Dialler

__all__ = ["ClientCertificates", "Dialler"]
