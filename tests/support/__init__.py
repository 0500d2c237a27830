"""What journeys share: throwaway certificates, origins on loopback, and Playhead as a process."""
