#!/usr/bin/env python3
"""For whom a job of root's writes: what binds that user binds the ranks."""

import errno
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import jobtest
import limetest

MIB = 1 << 20
CAP_SYS_RESOURCE = 1 << 24
SOMEBODY = 65534


class Users(jobtest.TestCase):
    def setUp(self):
        super().setUp()
        if os.geteuid() != 0:
            self.skipTest("needs root")

    def of_threads(self, pid, key):
        """What is said of that in the status of all threads, as a set."""
        found = set()
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/status", encoding="ascii") as file:
                found |= {line.split(":")[1].strip() for line in file if line.startswith(key + ":")}
        return found

    def test_rights(self):
        """No rank may go beyond limits; after a write for somebody it is root's again."""
        path, data = self.data_file(5_000_000)
        model, job = bytearray(data), self.job(2)
        client = job.client(8 * MIB)
        file = client.open_for_writing(path)
        for uid in SOMEBODY, 0, SOMEBODY:
            client.window[:4 * MIB] = model[:4 * MIB] = random.randbytes(4 * MIB)
            self.assertEqual(client.write(file, 0, 4 * MIB, 0, uid=uid), 4 * MIB)
            self.assertHolds(path, model)
            for pid in job.rank_pids():
                self.assertEqual(self.of_threads(pid, "Uid"), {"0\t0\t0\t0"})
                for key in "CapEff", "CapPrm":
                    for caps in self.of_threads(pid, key):
                        self.assertEqual(int(caps, 16) & CAP_SYS_RESOURCE, 0, key)
        self.assertEqual(job.stop(), 0)

    def test_reserved_blocks(self):
        """They are root's: who is written for does not get them."""
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
        text = self.assertRefused(errno.ENOSPC, client.write, file, 0, 40 * MIB, 0, uid=SOMEBODY)
        self.assertIn("No space left", text)
        self.assertEqual(client.write(file, 0, 40 * MIB, 0, uid=0), 40 * MIB)

    def test_mpirun_killed_afterwards(self):
        """The job ends as ever, though the kernel does not tell a thread of its parent's end any more
        once that thread has changed its user."""
        path, _ = self.data_file(1000)
        job = self.job(2)
        client = job.client(MIB)
        file = client.open_for_writing(path)
        client.write(file, 0, MIB, 0, uid=SOMEBODY)
        job.process.kill()
        self.assertGone(job, mpirun_killed=True)


if __name__ == "__main__":
    limetest.main()
