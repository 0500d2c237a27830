"""A place from which the proxy is the only thing that can be reached: plain Linux, rootless, no binary of others.

What runs outside, in the proxy's process, and what runs inside have little in common but the channel between them:

    outside   sandbox.py         starts a sandbox, takes its listeners, runs the command in it
              hiding.py      what of the file system is hidden from the command
              files.py       what it sees of it at all, with bubblewrap
              preflight.py   why a sandbox cannot be made here, in words
              names.py       answers to DNS, and whose address is whose
              packet_capture.py         what was tried and refused, read from packets
              services.py    local services that a live rule lets in
              socket_reachability.py       path sockets that stay within reach
    inside    init.py      the steps, in order; the first process, which reaps
              namespaces.py  user, network, mount, process, IPC and host name namespaces
              netlink.py     every address is this machine's
              listeners.py   sockets made inside, for the proxy outside
              mountinfo.py   what is mounted where
              mounts.py      hidden folders, resolver, hosts, roots, /proc
              seccomp.py     which system calls are refused
              kernel.py      system calls that Python does not have
              counters.py    what the kernel has counted
    both      channel.py     messages with descriptors
              bpf.py         filters for seccomp and packets

A socket belongs to the network namespace in which it was made. So the proxy accepts, outside, connections that are
made inside, and no byte is copied on the way.
"""
