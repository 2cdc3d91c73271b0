"""A home on a network drive is told from one on a local disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from council.storage.drivers import network_file_system

MOUNTS = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
36 22 0:32 / /mnt/nfs rw,relatime shared:7 - nfs4 server:/export rw
37 36 8:2 / /mnt/nfs/local rw - ext4 /dev/sdb1 rw
38 22 0:33 / /mnt/with\\040space rw - cifs //server/share rw
39 22 0:34 / /mnt/Größe rw - fuse.sshfs me@there: rw
40 22 0:35 / /mnt/\udcff rw - nfs server:/b rw
41 22 0:36 / /mnt/twice rw - nfs server:/c rw
42 22 8:3 / /mnt/twice rw - xfs /dev/sdc1 rw
43 22 0:37 / /mnt/gluster rw - fuse.glusterfs server:/volume rw
44 22 0:38 / /mnt/guest rw - virtiofs shared rw
"""


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/home/somebody", ""),
        ("/mnt/nfs/homes/mine", "nfs4"),
        ("/mnt/nfsx", ""),
        ("/mnt/nfs/local/mine", ""),
        ("/mnt/with space/mine", "cifs"),
        ("/mnt/Größe", "fuse.sshfs"),
        ("/mnt/\udcff/mine", "nfs"),
        ("/mnt/twice", ""),
        ("/mnt/gluster", "fuse.glusterfs"),
        ("/mnt/guest", ""),
    ],
)
def test_the_nearest_mount_says_of_what_kind_a_folder_is(tmp_path: Path, folder: str, kind: str) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_bytes(MOUNTS.encode("utf-8", "surrogateescape"))
    assert network_file_system(Path(folder), mounts) == kind


def test_where_nobody_says_it_counts_as_local(tmp_path: Path) -> None:
    assert network_file_system(tmp_path, tmp_path / "absent") == ""
