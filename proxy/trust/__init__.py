"""Trust: the CA, the clients' roots and the variables that lead a client to the proxy."""
