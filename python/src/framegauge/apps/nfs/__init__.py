"""A file service: files that clients read and write over NFS, with an RPC client of our own (workload `nfs`)."""

from __future__ import annotations

__all__ = ["FOLDER", "LARGEST_BLOCK", "LARGEST_DATAGRAM_BLOCK", "MOUNT_PORT", "PORT"]

PORT = 2049
MOUNT_PORT = 20048
FOLDER = "/files"  # by which version 4 knows what is exported
LARGEST_BLOCK = 1 << 20  # bytes of a call over TCP: the most that Linux clients ask for (nfs(5), rsize)
LARGEST_DATAGRAM_BLOCK = 32 << 10  # bytes of a call over UDP: what NFS servers take, below UDP's own 64 KiB
