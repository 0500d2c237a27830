"""A sandbox in which only the proxy can be reached: plain Linux, rootless, without other programs.

The part in the proxy's process and the part in the sandbox share only the channel between them:

    proxy     sandbox.py                        starts a sandbox, takes its listeners, runs the command in it
              preflight.py                          explains why a sandbox cannot be created here
              filesystem/masking.py                 plans the masked files and folders
              filesystem/protection.py              plans how the files that the proxy depends on are protected
              filesystem/break_hard_links.py        copies of the proxy's files that have a second name
              filesystem/playhead_startup_paths.py  what the next start of the proxy would load
              filesystem/named_pipes.py             named pipes that a command could write to
              filesystem/bubblewrap.py              the visible part of the file system, with bubblewrap
              filesystem/socket_reachability.py     path sockets and named pipes of programs outside
              network/dns_answers.py                answers to DNS, and the name behind each address
              network/packet_capture.py             attempts that were refused, read from packets
              network/local_services.py             local services that a live rule allows
              network/loopback_connector.py         reaches what the command listens at in there
    sandbox   init.py                           the setup steps, in order; the first process, which reaps
              run_on_folder_copies.py                runs a command that is in no sandbox on copies of its folders
              connect_for_command.py                 the watcher process, which makes the command's connections
              kernel/namespaces.py                   user, network, mount, process, IPC and host name namespaces
              kernel/seccomp.py                      the system calls that are refused
              kernel/landlock.py                     files are opened for writing in named folders alone
              kernel/seccomp_notifications.py        system calls that wait for the watcher's answer
              kernel/syscalls.py                     system calls that Python lacks
              network/netlink.py                     makes every address local
              network/listeners.py                   sockets created in the sandbox, for the proxy
              network/loopback_connector_process.py  looks and connects for network/loopback_connector.py
              network/packet_counters.py             the kernel's packet counters
              filesystem/mountinfo.py                the mount table
              filesystem/protective_mounts.py        copies to write to, and mounts that nobody can move
              filesystem/devices.py                  the sandbox's own /dev
              filesystem/mount_folder_copies.py      overlays and copies in the place of working folders
              filesystem/mounts.py                   masked folders, resolver, hosts, roots, /proc
    both      channel.py                        messages with descriptors
              kernel/bpf.py                     filters for seccomp and packets

A socket belongs to the network namespace in which it was created. So the proxy accepts, outside, connections that are
made in the sandbox, and no byte is copied on the way.
"""
