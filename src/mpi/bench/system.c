/* system.c - describe the machine and its libraries, and drop its page cache */
#define _GNU_SOURCE
#include "system.h"
#include "backend.h"
#include "cleanup.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

/* ---- MPI ---- */

/* Sets s->mpi from a text such as "Open MPI v4.1.4, ..." or "MPICH Version:\t4.0.2\n...". */
static void set_mpi(struct bench_system *s)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length, major, minor, release;
    MPI_Get_library_version(text, &length);
    const char *mpich = strstr(text, "MPICH Version:");
    if (sscanf(text, "Open MPI v%d.%d.%d", &major, &minor, &release) == 3) {
        snprintf(s->mpi, sizeof s->mpi, "Open MPI %d.%d.%d", major, minor, release);
        return;
    }
    if (mpich && sscanf(mpich, "MPICH Version: %40s", text) == 1)
        snprintf(s->mpi, sizeof s->mpi, "MPICH %.40s", text);
    else
        snprintf(s->mpi, sizeof s->mpi, "%.*s", (int)strcspn(text, ",\n"), text);
}

/* Returns true if a loaded library's path contains `prefix`. name: gets the rest, up to ".". */
static bool is_loaded(const char *prefix, char *name, size_t cap)
{
    char line[2 * BENCH_PATH_BYTES];
    bool found = false;
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps && !found && fgets(line, sizeof line, maps)) {
        const char *at = strstr(line, prefix);
        found = at != NULL;
        if (at) {
            at += strlen(prefix);
            snprintf(name, cap, "%.*s", (int)strcspn(at, ".\n"), at);
        }
    }
    if (maps)
        fclose(maps);
    return found;
}

/* Sets component to the name of Open MPI's io component, or leaves it unchanged. An MPI file
 * must be open: OMPIO then has loaded a module mca_fs_*, or ROMIO is loaded as mca_io_romio*.
 * If all components are in one library, only one that the user has chosen is known. */
static void find_component(char *component, size_t cap)
{
    char name[64];
    const char *chosen = getenv("OMPI_MCA_io");
    if (is_loaded("/mca_fs_", name, sizeof name))
        snprintf(component, cap, "ompio");
    else if (is_loaded("/mca_io_romio", name, sizeof name))
        snprintf(component, cap, "romio%.20s", name);
    else if (chosen && !strpbrk(chosen, "^,"))
        snprintf(component, cap, "%s", chosen);
}

static int64_t get_info_number(MPI_Info info, const char *key)
{
    char value[MPI_MAX_INFO_VAL + 1];
    int found;
    MPI_Info_get(info, key, MPI_MAX_INFO_VAL, value, &found);
    long long number = found ? atoll(value) : 0;
    return number > 0 ? number : 0;
}

/* Opens a new file PATH.probe to find which component MPI-IO uses, and reads the file system's
 * striping from the hints of the file. Removes the file. */
static void probe_file_system(struct bench_system *s, const char *path)
{
    char name[BENCH_PATH_BYTES + 8];
    MPI_File file;
    MPI_Info info;
    struct stat st;
    int found, length;
    strcpy(s->mpi_io, "unknown");
    snprintf(name, sizeof name, "%.*s.probe", BENCH_PATH_BYTES, path);
    if (lstat(name, &st) == 0)
        return;
    bench_cleanup_add_file(name);
    if (MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_WRONLY,
                      MPI_INFO_NULL, &file) != MPI_SUCCESS)
        return;
    if (strncmp(s->mpi, "Open MPI", 8) == 0)
        find_component(s->mpi_io, sizeof s->mpi_io);
    if (MPI_File_get_info(file, &info) == MPI_SUCCESS) {
        MPI_Info_get_valuelen(info, "romio_cb_write", &length, &found);
        if (found && strcmp(s->mpi_io, "unknown") == 0)
            strcpy(s->mpi_io, "romio");
        s->stripe_bytes = get_info_number(info, "striping_unit");
        s->stripe_count = get_info_number(info, "striping_factor");
        MPI_Info_free(&info);
    }
    MPI_File_close(&file);
    unlink(name);
}

/* ---- the file system ---- */

/* Returns true if the mount point `point` is the directory or one of its parents. */
static bool contains_directory(const char *point, const char *directory)
{
    size_t n = strlen(point);
    return strcmp(point, "/") == 0 ||
           (strncmp(point, directory, n) == 0 && (directory[n] == '/' || directory[n] == '\0'));
}

/* Sets s->file_system to the type of the innermost mount that contains the directory. A line of
 * mountinfo is "36 35 98:0 / /mnt rw,noatime shared:1 - ext3 /dev/root rw". */
static void set_file_system_type(struct bench_system *s, const char *directory)
{
    char line[2 * BENCH_PATH_BYTES], point[BENCH_PATH_BYTES], type[64];
    size_t longest = 0;
    FILE *mounts = fopen("/proc/self/mountinfo", "re");
    strcpy(s->file_system, "unknown");
    while (mounts && fgets(line, sizeof line, mounts)) {
        const char *rest = strstr(line, " - ");
        if (!rest || sscanf(line, "%*s %*s %*s %*s %4095s", point) != 1 ||
            sscanf(rest, " - %63s", type) != 1)
            continue;
        if (contains_directory(point, directory) && strlen(point) >= longest) {
            longest = strlen(point);
            strcpy(s->file_system, type);
        }
    }
    if (mounts)
        fclose(mounts);
}

static void set_file_system(struct bench_system *s, const char *path)
{
    char directory[BENCH_PATH_BYTES];
    struct stat st;
    snprintf(directory, sizeof directory, "%s", path);
    char *slash = strrchr(directory, '/');
    slash[slash == directory] = '\0';
    set_file_system_type(s, directory);
    s->block_bytes = stat(directory, &st) == 0 ? st.st_blksize : 0;
}

void bench_system_init(struct bench_system *s, const char *path)
{
    struct utsname name;
    memset(s, 0, sizeof *s);
    set_mpi(s);
    set_file_system(s, path);
    probe_file_system(s, path);
    gethostname(s->host, sizeof s->host - 1);
    if (uname(&name) == 0)
        snprintf(s->kernel, sizeof s->kernel, "%s %s", name.sysname, name.release);
    s->cpus = sysconf(_SC_NPROCESSORS_ONLN);
    s->memory_bytes = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
}

static json_t *number_or_null(int64_t value)
{
    return value ? json_integer(value) : json_null();
}

json_t *bench_system_json(const struct bench_system *s)
{
    return json_pack(
        "{s:s, s:s, s:o, s:s, s:s, s:I, s:I, s:{s:s, s:o, s:o, s:o}}", "mpi", s->mpi, "mpi_io",
        s->mpi_io, "libraries", bench_backend_libraries(), "host", s->host, "kernel", s->kernel,
        "cpus", (json_int_t)s->cpus, "memory_bytes", (json_int_t)s->memory_bytes, "file_system",
        "type", s->file_system, "block_bytes", number_or_null(s->block_bytes), "stripe_bytes",
        number_or_null(s->stripe_bytes), "stripe_count", number_or_null(s->stripe_count));
}

/* ---- the page cache ---- */

#define DROP_CACHES "/proc/sys/vm/drop_caches"

static const char whole_cache[] = "drop_caches", file_pages[] = "posix_fadvise";

const char *bench_cache_method(const struct bench_world *world, bool file_only)
{
    int good = !file_only;
    if (world->host_rank == 0 && good) {
        int fd = open(DROP_CACHES, O_WRONLY | O_CLOEXEC);
        good = fd >= 0;
        if (fd >= 0)
            close(fd);
    }
    MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    return good ? whole_cache : file_pages;
}

bool bench_cache_is_whole(const char *method)
{
    return strcmp(method, whole_cache) == 0;
}

static void drop_whole_cache(void)
{
    sync();
    int fd = open(DROP_CACHES, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    if (write(fd, "3\n", 2) != 2)
        bench_log(DROP_CACHES ": write: %m");
    close(fd);
}

static void drop_file_pages(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return; /* the file does not exist yet */
    fsync(fd);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
}

void bench_cache_drop(const struct bench_world *world, const char *method, const char *path)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (world->host_rank == 0 && bench_cache_is_whole(method))
        drop_whole_cache();
    else if (world->host_rank == 0)
        drop_file_pages(path);
    MPI_Barrier(MPI_COMM_WORLD);
}
