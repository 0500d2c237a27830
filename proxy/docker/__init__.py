"""The sandbox for agents in images: containers on a network that leads only to the proxy.

    network holder      network none; makes every address local, opens listeners, hands them over
    proxy               outside (`playhead replay --sandbox docker`), or in a container (compose.yaml)
    agent container     in the network namespace of the network holder

A socket belongs to the network namespace in which it was created. So the agent reaches the proxy, and the proxy needs no
address at which an agent could reach it or anything else. Docker's bridge and resolver are not used.

    network_holder.py      runs in the container that creates the network
    network_interfaces.py  the network devices that lead out of a container
    container_network.py   the proxy's end: takes the listeners, reads the kernel's counters
    docker_cli.py          Docker's command line, and its errors
    container_spec.py      variables, files and flags of an agent's container
    sandbox.py             the containers that `playhead` starts and removes itself
    compose_agent.py       an agent in a container that compose starts
    seccomp_profile.py     the seccomp profile, seccomp.json
"""
