#!/bin/bash
#SBATCH --nodes=3 --ntasks-per-node=1
# sbatch mount.sh DIRECTORY COMMAND [ARGUMENT...]: runs a command with the directory mounted at $RUNS
export RUNS=${TMPDIR:-/tmp}/runs-$SLURM_JOB_ID
exec limefs -o "ranks=$SLURM_NTASKS" "$1" "$RUNS" --run "${@:2}"
