"""The sandbox where an agent comes as an image: containers on a network that leads to nothing but the proxy.

    network holder    network none; makes every address lead to itself, opens listeners, hands them over
    proxy               wherever it is: outside (`playhead replay --sandbox docker`), or in a container (compose.yaml)
    agent container     in the network namespace of the first one

A socket belongs to the network namespace in which it was made, so that the agent reaches the proxy, and the proxy
needs no address that an agent could reach it, or anything else, at. Neither a bridge nor a resolver of Docker's is there.

    network_holder.py    runs in the container whose network it is
    devices.py   which of its network devices lead anywhere
    link.py      the other end: takes the listeners, asks for the kernel's counters
    engine.py    Docker's command line, and what is wrong where it does not work
    image.py     what an agent is given in its container
    sandbox.py       the containers that `playhead` starts and removes itself
    sidecar.py    an agent whose container somebody else starts
    profile.py   the seccomp profile, seccomp.json
"""
