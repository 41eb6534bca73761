#!/usr/bin/env python3
"""A job of root's that writes for a user obeys that user's limits."""

import errno
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import jobtest
import limetest

MIB = 1 << 20
CAP_SYS_RESOURCE = 1 << 24
OTHER_USER = 65534


class Users(jobtest.TestCase):
    def setUp(self):
        super().setUp()
        if os.geteuid() != 0:
            self.skipTest("needs root")

    def thread_status(self, pid, key):
        """The key's values in the status of all threads, as a set."""
        found = set()
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/status", encoding="ascii") as file:
                found |= {line.split(":")[1].strip() for line in file if line.startswith(key + ":")}
        return found

    def test_rights(self):
        """No rank may exceed limits; after a write for another user, the rank is root's again."""
        path, data = self.data_file(5_000_000)
        model, job = bytearray(data), self.job(2)
        client = job.client(8 * MIB)
        file = client.open_for_writing(path)
        for uid in OTHER_USER, 0, OTHER_USER:
            client.window[:4 * MIB] = model[:4 * MIB] = random.randbytes(4 * MIB)
            self.assertEqual(client.write(file, 0, 4 * MIB, 0, uid=uid), 4 * MIB)
            self.assertHolds(path, model)
            for pid in job.rank_pids():
                self.assertEqual(self.thread_status(pid, "Uid"), {"0\t0\t0\t0"})
                for key in "CapEff", "CapPrm":
                    for caps in self.thread_status(pid, key):
                        self.assertEqual(int(caps, 16) & CAP_SYS_RESOURCE, 0, key)
        self.assertEqual(job.stop(), 0)

    def test_reserved_blocks(self):
        """A write for a user does not get root's reserved blocks."""
        directory, disk = self.tempdir(), os.path.join(self.tempdir(), "disk")
        with open(disk, "wb") as file:
            file.truncate(64 * MIB)
        limetest.run(["mkfs.ext4", "-q", "-m", "50", disk], check=True)
        if limetest.run(["mount", "-o", "loop", disk, directory]).returncode != 0:
            self.skipTest("needs loop devices")
        self.addCleanup(limetest.run, ["umount", "-l", directory])
        path = os.path.join(directory, "data")
        open(path, "wb").close()
        client = self.job(2).client(48 * MIB)
        file = client.open_for_writing(path)
        text = self.assertRefused(errno.ENOSPC, client.write, file, 0, 40 * MIB, 0, uid=OTHER_USER)
        self.assertIn("No space left", text)
        self.assertEqual(client.write(file, 0, 40 * MIB, 0, uid=0), 40 * MIB)

    def test_mpirun_killed_afterwards(self):
        """The job ends as usual, though a thread that has changed its user no longer receives its
        parent-death signal."""
        path, _ = self.data_file(1000)
        job = self.job(2)
        client = job.client(MIB)
        file = client.open_for_writing(path)
        client.write(file, 0, MIB, 0, uid=OTHER_USER)
        job.process.kill()
        self.assertGone(job, mpirun_killed=True)


if __name__ == "__main__":
    limetest.main()
