#!/bin/bash
#SBATCH --nodes=3 --ntasks-per-node=1
# sbatch steps.sh COMMAND DIRECTORY...: a job step of limefs-io serves one step for each directory, which
# runs the command with the directory mounted at $RUNS
io=${TMPDIR:-/tmp}/io-$SLURM_JOB_ID
srun --mpi=pmix --overlap --kill-on-bad-exit limefs-io --socket "$io" &
job=$!
steps=()
for directory in "${@:2}"; do
    export RUNS=$io-${#steps[@]}
    srun --nodes=1 --ntasks=1 --nodelist="$SLURMD_NODENAME" --overlap \
        limefs -o "job=$io" "$directory" "$RUNS" --run "$1" &
    steps+=($!)
done
status=0
for step in "${steps[@]}"; do wait "$step" || status=$?; done
limefs-io --stop "$io" || kill "$job" # it has not started yet
wait
exit "$status"
