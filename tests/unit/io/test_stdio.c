/*
 * tests/unit/io/test_stdio.c: a stream on standard input and output. The test starts itself with other descriptors 0
 * and 1; that other self echoes, or is told to do something else, and says by its exit code what it saw.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/io/world.h"
#include <poll.h>

/* ---- the other self ---- */

#define STRAY "stray text"

static bool is_null(int fd) {
    struct stat file, null;
    return fstat(fd, &file) == 0 && stat("/dev/null", &null) == 0 && file.st_rdev == null.st_rdev;
}

static bool same(int a, int b) {
    struct stat x, y;
    return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* "echo": sends back what comes, ends at eof. "large": sends 4 MB and ends. "closed": closes at once. */
static int other_self(const char *what) {
    world w;
    end e, second;
    world_init(&w);
    end_init(&e, &w);
    end_init(&second, &w);
    if (ew__stream_open_stdio(&e.stream, &w.loop) != EW_OK)
        return 10;
    if (ew__stream_open_stdio(&second.stream, &w.loop) != EW_EBUSY)
        return 11;
    if (!is_null(0) || !same(1, 2))
        return 12;
    (void)printf(STRAY); /* goes to standard error */
    (void)fflush(stdout);
    e.echo = strcmp(what, "echo") == 0;
    end_start(&e);
    if (strcmp(what, "large") == 0) {
        const size_t n = (size_t)4 << 20;
        char *bytes = malloc(n);
        memset(bytes, 'x', n);
        end_send(&e, bytes, n);
        free(bytes);
        ew__stream_finish(&e.stream);
    } else if (strcmp(what, "closed") == 0) {
        ew__stream_close(&e.stream, EW_OK);
    }
    run_until(&w, &e.n_closed, 1);
    bool lost = strcmp(what, "large") == 0 && e.why == EW_ECLOSED; /* nobody took it */
    int code = lost ? 20 : e.why != EW_OK ? 13 : e.echo && e.n_eof != 1 ? 14 : !is_null(0) || !same(1, 2) ? 15 : 0;
    end_free(&e);
    world_done(&w);
    return code;
}

/* ---- starting it ---- */

/* Takes in and out. Standard error is collected in a pipe. */
static pid_t start(const char *what, int in, int out, int *ret_errors) {
    int errors[2];
    assert_int_equal(pipe2(errors, O_CLOEXEC), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(errors[1], 2) < 0)
            _exit(99);
        (void)fcntl(0, F_SETFD, 0); /* where dup2 had nothing to do */
        (void)fcntl(1, F_SETFD, 0);
        execl("/proc/self/exe", "test", what, NULL);
        _exit(98);
    }
    close(errors[1]);
    close(in);
    if (out != in)
        close(out);
    *ret_errors = errors[0];
    return pid;
}

static void assert_ends(pid_t pid, int errors, int code) {
    char text[2000] = "";
    size_t n = 0;
    ssize_t got;
    while (n < sizeof text - 1 && (got = read(errors, text + n, sizeof text - 1 - n)) > 0)
        n += (size_t)got;
    close(errors);
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != code)
        fail_msg("ended with status %x: %s", (unsigned)status, text);
    assert_string_equal(text, STRAY);
}

static void write_text(int fd, const char *text) { assert_int_equal(write(fd, text, strlen(text)), strlen(text)); }

/* Reads to eof and compares. */
static void assert_reads(int fd, const char *text) {
    char got[200] = "";
    size_t n = 0;
    ssize_t more;
    while (n < sizeof got - 1 && (more = read(fd, got + n, sizeof got - 1 - n)) > 0)
        n += (size_t)more;
    assert_string_equal(got, text);
}

static bool is_blocking(int fd) { return !(fcntl(fd, F_GETFL) & O_NONBLOCK); }

static int temporary_file(const char *content) {
    char name[] = "/tmp/ew-test-stdio-XXXXXX";
    int fd = mkostemp(name, O_CLOEXEC);
    assert_true(fd >= 0);
    (void)unlink(name);
    write_text(fd, content);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    return fd;
}

static int copy_of(int fd) {
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    assert_true(copy >= 0);
    return copy;
}

/* ---- the tests ---- */

static void pipes(void **state) {
    int in[2], out[2], errors;
    (void)state;
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    int shared_in = copy_of(in[0]), shared_out = copy_of(out[1]);
    pid_t pid = start("echo", in[0], out[1], &errors);
    write_text(in[1], "hello");
    char five[6] = "";
    assert_int_equal(read(out[0], five, 5), 5);
    assert_string_equal(five, "hello");
    assert_true(is_blocking(shared_in)); /* while it runs, too: others may use these ends */
    assert_true(is_blocking(shared_out));
    write_text(in[1], " bye");
    close(in[1]);
    close(shared_out);
    assert_reads(out[0], " bye");
    assert_ends(pid, errors, 0);
    close(shared_in);
    close(out[0]);
}

/* The writer is gone before we begin. */
static void pipe_that_ended(void **state) {
    int in[2], out[2], errors;
    (void)state;
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    write_text(in[1], "left behind");
    close(in[1]);
    pid_t pid = start("echo", in[0], out[1], &errors);
    assert_reads(out[0], "left behind");
    assert_ends(pid, errors, 0);
    close(out[0]);
}

static void named_pipe_that_ended(void **state) {
    char name[] = "/tmp/ew-test-fifo-XXXXXX";
    int out[2], errors;
    (void)state;
    close(mkstemp(name));
    assert_int_equal(unlink(name), 0);
    assert_int_equal(mkfifo(name, 0600), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    int reader = open(name, O_RDONLY | O_NONBLOCK | O_CLOEXEC), writer = open(name, O_WRONLY | O_CLOEXEC);
    assert_int_equal(fcntl(reader, F_SETFL, 0), 0);
    write_text(writer, "left behind");
    close(writer);
    int shared = copy_of(reader);
    pid_t pid = start("echo", reader, out[1], &errors);
    assert_reads(out[0], "left behind");
    assert_ends(pid, errors, 0);
    assert_true(is_blocking(shared));
    close(shared);
    close(out[0]);
    (void)unlink(name);
}

/* One socket for both, and its flags are as they were when it is over. */
static void one_socket(void **state) {
    int pair[2], errors;
    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    int shared = copy_of(pair[0]);
    pid_t pid = start("echo", pair[0], pair[0], &errors);
    write_text(pair[1], "hello");
    char five[6] = "";
    assert_int_equal(read(pair[1], five, 5), 5);
    assert_string_equal(five, "hello");
    (void)shutdown(pair[1], SHUT_WR);
    assert_ends(pid, errors, 0);
    assert_true(is_blocking(shared));
    close(shared);
    assert_reads(pair[1], "");
    close(pair[1]);
}

static void files(void **state) {
    int errors, in = temporary_file("from a file"), out = temporary_file("");
    (void)state;
    int kept = copy_of(out);
    pid_t pid = start("echo", in, out, &errors);
    assert_ends(pid, errors, 0);
    assert_int_equal(lseek(kept, 0, SEEK_SET), 0);
    assert_reads(kept, "from a file");
    close(kept);
}

static void file_and_pipe(void **state) {
    int out[2], errors;
    (void)state;
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    pid_t pid = start("echo", temporary_file("a file"), out[1], &errors);
    assert_reads(out[0], "a file");
    assert_ends(pid, errors, 0);
    close(out[0]);
}

static void nothing_at_all(void **state) {
    int errors;
    (void)state;
    pid_t pid =
        start("echo", open("/dev/null", O_RDONLY | O_CLOEXEC), open("/dev/null", O_WRONLY | O_CLOEXEC), &errors);
    assert_ends(pid, errors, 0);
}

/* Closed while a pump could still read or write. */
static void closed_at_once(void **state) {
    int errors;
    (void)state;
    pid_t pid =
        start("closed", open("/dev/zero", O_RDONLY | O_CLOEXEC), open("/dev/null", O_WRONLY | O_CLOEXEC), &errors);
    assert_ends(pid, errors, 0);
}

static size_t read_all(int fd) {
    static char buffer[65536];
    size_t n = 0;
    ssize_t more;
    while ((more = read(fd, buffer, sizeof buffer)) > 0)
        n += (size_t)more;
    return n;
}

/* More than a pipe, or the pump's socket, holds: all of it arrives before the end. */
static void large(void **state) {
    int out[2], errors;
    (void)state;
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    pid_t pid = start("large", open("/dev/null", O_RDONLY | O_CLOEXEC), out[1], &errors);
    assert_int_equal(read_all(out[0]), (size_t)4 << 20);
    assert_ends(pid, errors, 0);
    close(out[0]);
    int file = temporary_file(""), kept = copy_of(file);
    pid = start("large", open("/dev/null", O_RDONLY | O_CLOEXEC), file, &errors);
    assert_ends(pid, errors, 0);
    assert_int_equal(lseek(kept, 0, SEEK_END), (off_t)4 << 20);
    close(kept);
}

/* The reader goes away: an error, not a signal (whose action is the default one in there). */
static void reader_goes(void **state) {
    int out[2], errors;
    char byte;
    (void)state;
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    pid_t pid = start("large", open("/dev/null", O_RDONLY | O_CLOEXEC), out[1], &errors);
    assert_int_equal(read(out[0], &byte, 1), 1);
    close(out[0]);
    assert_ends(pid, errors, 20);
    pid = start("large", open("/dev/null", O_RDONLY | O_CLOEXEC), open("/dev/full", O_WRONLY | O_CLOEXEC), &errors);
    assert_ends(pid, errors, 20);
}

static void terminal(void **state) {
    int errors, master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    char got[200] = "";
    (void)state;
    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0)
        skip(); /* no terminals here */
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC), shared = copy_of(slave);
    pid_t pid = start("echo", slave, slave, &errors);
    write_text(master, "line\n\004"); /* a line, then the end of input */
    assert_ends(pid, errors, 0);
    assert_true(is_blocking(shared));
    assert_true(read(master, got, sizeof got - 1) > 0);
    assert_non_null(strstr(got, "line"));
    close(shared);
    close(master);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pipes),          cmocka_unit_test(pipe_that_ended), cmocka_unit_test(named_pipe_that_ended),
        cmocka_unit_test(one_socket),     cmocka_unit_test(files),           cmocka_unit_test(file_and_pipe),
        cmocka_unit_test(nothing_at_all), cmocka_unit_test(closed_at_once),  cmocka_unit_test(large),
        cmocka_unit_test(reader_goes),    cmocka_unit_test(terminal),
    };
    if (argc > 1)
        return other_self(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
