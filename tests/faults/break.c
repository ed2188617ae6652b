/* Run a program, and break one of the calls by which it changes files.
 *
 *     break LOG FOLDER CALL HOW PROGRAM ARGUMENT...
 *
 * Counts the system calls of all threads and children of PROGRAM that change files below FOLDER,
 * and breaks the one with the number CALL (0: none). HOW says what happens to it:
 *
 *     kill     the process is killed instead of it
 *     half     a write writes half of its bytes, any other call is made; then the process is killed
 *     short    a write writes half of its bytes, and says so; any other call is made
 *     NUMBER   the call is not made, and fails with this error number
 *     +NUMBER  so do all later calls that need space on the disk
 *
 * Every call is written to LOG, as a line with its number, its name and its file. The exit code is
 * that of PROGRAM, or 128 and the number of the signal that ended it.
 *
 * System calls are watched, not functions of the C library, because not every program uses those.
 * Only for Linux on x86-64.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

/* Where a call names its file: a descriptor or a path in one of its arguments. `space`: it fails on
 * a full disk. */
struct call {
    long number;
    const char *name;
    enum { DESCRIPTOR, PATH } by;
    int argument;
    int space;
};

static const struct call calls[] = {
    {SYS_write, "write", DESCRIPTOR, 0, 1},
    {SYS_pwrite64, "pwrite64", DESCRIPTOR, 0, 1},
    {SYS_writev, "writev", DESCRIPTOR, 0, 1},
    {SYS_ftruncate, "ftruncate", DESCRIPTOR, 0, 0},
    {SYS_fallocate, "fallocate", DESCRIPTOR, 0, 1},
    {SYS_copy_file_range, "copy_file_range", DESCRIPTOR, 2, 1},
    {SYS_sendfile, "sendfile", DESCRIPTOR, 0, 1},
    {SYS_fsync, "fsync", DESCRIPTOR, 0, 1},
    {SYS_fdatasync, "fdatasync", DESCRIPTOR, 0, 1},
    {SYS_fchmod, "fchmod", DESCRIPTOR, 0, 0},
    {SYS_flock, "flock", DESCRIPTOR, 0, 0},
    {SYS_open, "open", PATH, 0, 1},
    {SYS_openat, "openat", PATH, 1, 1},
    {SYS_creat, "creat", PATH, 0, 1},
    {SYS_truncate, "truncate", PATH, 0, 0},
    {SYS_rename, "rename", PATH, 0, 0},
    {SYS_renameat, "renameat", PATH, 1, 0},
    {SYS_renameat2, "renameat2", PATH, 1, 0},
    {SYS_unlink, "unlink", PATH, 0, 0},
    {SYS_unlinkat, "unlinkat", PATH, 1, 0},
    {SYS_rmdir, "rmdir", PATH, 0, 0},
    {SYS_mkdir, "mkdir", PATH, 0, 1},
    {SYS_mkdirat, "mkdirat", PATH, 1, 1},
    {SYS_link, "link", PATH, 1, 1},
    {SYS_linkat, "linkat", PATH, 3, 1},
    {SYS_symlink, "symlink", PATH, 1, 1},
    {SYS_symlinkat, "symlinkat", PATH, 2, 1},
    {SYS_chmod, "chmod", PATH, 0, 0},
    {SYS_fchmodat, "fchmodat", PATH, 1, 0},
};

/* What is to happen at the end of the call that a thread is in. */
#define MOST_THREADS 4096
static struct thread {
    pid_t id;
    int has_result, was_halved, dies;
    long result;
    unsigned long long length;
} threads[MOST_THREADS];

static struct thread *thread_of(pid_t id)
{
    struct thread *free_one = NULL;
    for (int k = 0; k < MOST_THREADS; k++) {
        if (threads[k].id == id)
            return &threads[k];
        if (threads[k].id == 0 && !free_one)
            free_one = &threads[k];
    }
    if (free_one) {
        free_one->id = id;
        return free_one;
    }
    fprintf(stderr, "break: too many threads\n");
    exit(125);
}

static unsigned long long argument(const struct user_regs_struct *r, int k)
{
    const unsigned long long all[] = {r->rdi, r->rsi, r->rdx, r->r10, r->r8, r->r9};
    return all[k];
}

/* The path that a call names, or an empty one. */
static void path_of(pid_t id, const struct call *call, const struct user_regs_struct *r, char *path)
{
    char link[64];
    path[0] = 0;
    if (call->by == DESCRIPTOR) {
        snprintf(link, sizeof link, "/proc/%d/fd/%d", id, (int)argument(r, call->argument));
        ssize_t n = readlink(link, path, PATH_MAX - 1);
        path[n > 0 ? n : 0] = 0;
        return;
    }
    unsigned long long from = argument(r, call->argument);
    for (size_t n = 0; n + sizeof(long) < PATH_MAX; n += sizeof(long)) {
        errno = 0;
        long word = ptrace(PTRACE_PEEKDATA, id, from + n, 0);
        if (errno)
            break;
        memcpy(path + n, &word, sizeof word);
        if (memchr(path + n, 0, sizeof word))
            return;
    }
    path[0] = 0;
}

/* Does the call change a file below the folder? Relative paths count: the program works there. */
static int changes(const struct call *call, const struct user_regs_struct *r, const char *path, const char *folder)
{
    int flags = -1;
    if (call->number == SYS_open)
        flags = (int)r->rsi;
    if (call->number == SYS_openat)
        flags = (int)r->rdx;
    if (flags != -1 && (flags & O_ACCMODE) == O_RDONLY && !(flags & (O_CREAT | O_TRUNC)))
        return 0;
    size_t n = strlen(folder);
    int below = strncmp(path, folder, n) == 0 && (path[n] == '/' || path[n] == 0);
    return below || (call->by == PATH && path[0] && path[0] != '/');
}

int main(int n_words, char **words)
{
    if (n_words < 6) {
        fprintf(stderr, "usage: break LOG FOLDER CALL HOW PROGRAM ARGUMENT...\n");
        return 125;
    }
    FILE *log = fopen(words[1], "w");
    if (!log) {
        perror(words[1]);
        return 125;
    }
    const char *folder = words[2], *how = words[4];
    long broken = atol(words[3]), n_calls = 0;
    int to_kill = !strcmp(how, "kill"), to_halve = !strcmp(how, "half") || !strcmp(how, "short");
    int error = atoi(how);

    pid_t program = fork();
    if (program == 0) {
        fclose(log);
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        raise(SIGSTOP);
        execvp(words[5], words + 5);
        perror(words[5]);
        _exit(125);
    }
    int status;
    if (program < 0 || waitpid(program, &status, 0) != program || !WIFSTOPPED(status)) {
        fprintf(stderr, "break: the program does not start\n");
        return 125;
    }
    long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK |
                   PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC;
    if (ptrace(PTRACE_SETOPTIONS, program, 0, options) != 0) {
        perror("break: ptrace");
        return 125;
    }
    ptrace(PTRACE_SYSCALL, program, 0, 0);

    for (;;) {
        pid_t id = waitpid(-1, &status, __WALL);
        if (id < 0)
            return 125;
        if (!WIFSTOPPED(status)) {
            memset(thread_of(id), 0, sizeof(struct thread));
            if (id != program)
                continue;
            fclose(log);
            return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        }
        int signal = WSTOPSIG(status);
        if (signal != (SIGTRAP | 0x80)) {
            /* Stops of new threads and events of ptrace are no signals of the program. */
            int is_own = status >> 16 || signal == SIGTRAP || signal == SIGSTOP;
            ptrace(PTRACE_SYSCALL, id, 0, is_own ? 0 : signal);
            continue;
        }
        struct thread *thread = thread_of(id);
        struct user_regs_struct r;
        struct __ptrace_syscall_info info;
        ptrace(PTRACE_GETREGS, id, 0, &r);
        ptrace(PTRACE_GET_SYSCALL_INFO, id, sizeof info, &info);
        if (info.op != PTRACE_SYSCALL_INFO_ENTRY) {
            if (thread->has_result)
                r.rax = thread->result;
            /* The program may use the register again. */
            if (thread->was_halved)
                r.rdx = thread->length;
            if (thread->has_result || thread->was_halved)
                ptrace(PTRACE_SETREGS, id, 0, &r);
            if (thread->dies)
                kill(program, SIGKILL);
            thread->has_result = thread->was_halved = thread->dies = 0;
            ptrace(PTRACE_SYSCALL, id, 0, 0);
            continue;
        }
        for (size_t k = 0; k < sizeof calls / sizeof *calls; k++) {
            char path[PATH_MAX];
            if (calls[k].number != (long)r.orig_rax)
                continue;
            path_of(id, &calls[k], &r, path);
            if (!changes(&calls[k], &r, path, folder))
                break;
            n_calls++;
            fprintf(log, "%ld %s %s\n", n_calls, calls[k].name, path);
            fflush(log);
            int is_write = calls[k].number == SYS_write || calls[k].number == SYS_pwrite64;
            if (n_calls == broken && to_kill) {
                r.orig_rax = -1;
                ptrace(PTRACE_SETREGS, id, 0, &r);
                kill(program, SIGKILL);
            } else if (n_calls == broken && to_halve) {
                if (is_write && r.rdx > 1) {
                    thread->was_halved = 1;
                    thread->length = r.rdx;
                    r.rdx /= 2;
                    ptrace(PTRACE_SETREGS, id, 0, &r);
                }
                thread->dies = !strcmp(how, "half");
            } else if (error && broken && (n_calls == broken || (how[0] == '+' && n_calls > broken && calls[k].space))) {
                r.orig_rax = -1;
                ptrace(PTRACE_SETREGS, id, 0, &r);
                thread->has_result = 1;
                thread->result = -error;
            }
            break;
        }
        ptrace(PTRACE_SYSCALL, id, 0, 0);
    }
}
