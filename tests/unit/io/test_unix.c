/*
 * tests/unit/io/test_unix.c: Unix sockets: their files, and connections over them.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "unit/io/world.h"
#include <sys/un.h>

typedef struct door {
    ew__listener listener;
    world *world;
    end *next; /* where the next connection goes; NULL: it is refused */
    ew_err accepted;
    unsigned n_connections, n_closed;
} door;

static char folder[] = "/tmp/ew-test-unix-XXXXXX";
static char address_text[100];
static char path[80];

static int make_folder(void **state) {
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    (void)snprintf(path, sizeof path, "%s/x.sock", folder);
    (void)snprintf(address_text, sizeof address_text, "unix:%s", path);
    return chdir(folder);
}

static int remove_folder(void **state) {
    (void)state;
    return rmdir(folder); /* fails when a test left something */
}

static void on_connection(ew__listener *listener) {
    door *d = ew__container_of(listener, door, listener);
    end *e = d->next;
    d->n_connections++;
    if (!e) {
        ew__accept_refuse(listener);
        return;
    }
    d->accepted = ew__accept(listener, &e->stream);
    end_start(e);
    if (d->accepted != EW_OK)
        ew__stream_close(&e->stream, d->accepted);
}

static void on_door_closed(ew__listener *listener) { ew__container_of(listener, door, listener)->n_closed++; }

static ew_err open_door(door *d, world *w, ew__address *address) {
    memset(d, 0, sizeof *d);
    d->world = w;
    return ew__listen(&d->listener, &w->loop, address, on_connection);
}

static void close_door(door *d) {
    ew__listener_close(&d->listener, on_door_closed);
    run_until(d->world, &d->n_closed, 1);
}

static ew_err dial(end *e, world *w, const char *where) {
    const ew__where to = {.kind = EW__WHERE_UNIX, .path = where};
    end_init(e, w);
    return end_dial(e, &to);
}

static bool exists(void) { return access(path, F_OK) == 0; }

static void parse(ew__address *address) { assert_int_equal(ew__address_parse(address_text, address), EW_OK); }

/* ---- connections ---- */

static void echo_and_half_close(void **state) {
    world w;
    door d;
    end server, client;
    ew__address address;
    (void)state;
    world_init(&w);
    parse(&address);
    assert_int_equal(ew__address_probe(&address), EW_OK);
    assert_int_equal(open_door(&d, &w, &address), EW_OK);
    end_init(&server, &w);
    server.echo = true;
    d.next = &server;
    assert_int_equal(dial(&client, &w, path), EW_OK);
    end_send(&client, "hello", 5);
    run_until_bytes(&w, &client.n_in, 5);
    assert_string_equal(client.in, "hello");
    assert_int_equal(client.stream.bytes_out, 5);
    /* half closed: the rest still comes back, then eof */
    end_send(&client, "bye", 3);
    ew__stream_flush(&client.stream);
    (void)shutdown(client.stream.fd, SHUT_WR);
    run_until(&w, &client.n_eof, 1);
    assert_string_equal(client.in, "hellobye");
    assert_int_equal(server.n_eof, 1);
    end_close(&client);
    run_until(&w, &server.n_closed, 1);
    assert_int_equal(server.why, EW_OK);
    end_free(&server);
    close_door(&d);
    assert_false(exists());
    world_done(&w);
}

static void much(void **state) {
    const size_t n = (size_t)8 << 20;
    char *bytes = malloc(n);
    world w;
    door d;
    end server, client;
    ew__address address;
    (void)state;
    assert_non_null(bytes);
    for (size_t i = 0; i < n; i++)
        bytes[i] = (char)(i * 7 + (i >> 12));
    world_init(&w);
    parse(&address);
    assert_int_equal(open_door(&d, &w, &address), EW_OK);
    end_init(&server, &w);
    server.echo = true;
    d.next = &server;
    assert_int_equal(dial(&client, &w, path), EW_OK);
    end_send(&client, bytes, n);
    run_until_bytes(&w, &client.n_in, n);
    assert_memory_equal(client.in, bytes, n);
    assert_true(client.n_drained > 0);
    end_close(&client);
    run_until(&w, &server.n_closed, 1);
    end_free(&server);
    close_door(&d);
    world_done(&w);
    free(bytes);
}

/* SIGPIPE has its default action here. */
static void peer_goes_while_we_write(void **state) {
    const size_t n = (size_t)4 << 20;
    char *bytes = calloc(1, n);
    world w;
    door d;
    end server, client;
    ew__address address;
    (void)state;
    assert_non_null(bytes);
    world_init(&w);
    parse(&address);
    assert_int_equal(open_door(&d, &w, &address), EW_OK);
    end_init(&server, &w);
    d.next = &server;
    assert_int_equal(dial(&client, &w, path), EW_OK);
    run_until(&w, &d.n_connections, 1);
    ew__stream_read(&server.stream, false);
    ew__stream_read(&client.stream, false); /* so that it learns by writing */
    end_send(&client, bytes, n);
    ew__stream_flush(&client.stream);
    assert_non_null(client.stream.waiter);
    end_close(&server);
    run_until(&w, &client.n_closed, 1);
    assert_int_equal(client.why, EW_ECLOSED);
    end_free(&client);
    close_door(&d);
    world_done(&w);
    free(bytes);
}

/* A reader that takes nothing loses its connection, not our memory. */
static void stalled_reader(void **state) {
    const size_t n = (size_t)4 << 20;
    char *bytes = calloc(1, n);
    world w;
    door d;
    end server, client;
    ew__address address;
    (void)state;
    assert_non_null(bytes);
    world_init(&w);
    w.limits.stall_ms = 100;
    parse(&address);
    assert_int_equal(open_door(&d, &w, &address), EW_OK);
    end_init(&server, &w);
    d.next = &server;
    assert_int_equal(dial(&client, &w, path), EW_OK);
    run_until(&w, &d.n_connections, 1);
    ew__stream_read(&server.stream, false);
    end_send(&client, bytes, n);
    run_until(&w, &client.n_closed, 1);
    assert_int_equal(client.why, EW_ETIMEOUT);
    end_free(&client);
    end_close(&server);
    close_door(&d);
    world_done(&w);
    free(bytes);
}

static void refused_connections(void **state) {
    world w;
    door d;
    end clients[3];
    ew__address address;
    (void)state;
    world_init(&w);
    parse(&address);
    assert_int_equal(open_door(&d, &w, &address), EW_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(dial(&clients[i], &w, path), EW_OK);
        run_until(&w, &clients[i].n_eof, 1);
        end_close(&clients[i]);
    }
    close_door(&d);
    world_done(&w);
}

static void cannot_dial(void **state) {
    char too_long[200];
    world w;
    end e;
    (void)state;
    memset(too_long, 'a', sizeof too_long - 1);
    too_long[sizeof too_long - 1] = '\0';
    world_init(&w);
    assert_int_equal(dial(&e, &w, path), EW_ECONNECT);
    assert_string_equal(e.detail, uv_strerror(UV_ENOENT));
    assert_int_equal(dial(&e, &w, too_long), EW_ECONNECT);
    assert_string_equal(e.detail, uv_strerror(UV_ENAMETOOLONG));
    assert_int_equal(dial(&e, &w, ""), EW_ECONNECT);
    world_done(&w);
}

static void relative_path(void **state) {
    world w;
    door d;
    end server, client;
    ew__address address;
    (void)state;
    world_init(&w);
    assert_int_equal(ew__address_parse("unix:x.sock", &address), EW_OK);
    assert_int_equal(open_door(&d, &w, &address), EW_OK);
    assert_true(exists());
    end_init(&server, &w);
    server.echo = true;
    d.next = &server;
    assert_int_equal(dial(&client, &w, "./x.sock"), EW_OK);
    end_send(&client, "x", 1);
    run_until_bytes(&w, &client.n_in, 1);
    end_close(&client);
    run_until(&w, &server.n_closed, 1);
    end_free(&server);
    close_door(&d);
    assert_false(exists());
    world_done(&w);
}

/* Another user is not let in, even if the file's mode would let him. */
static void other_user(void **state) {
    world w;
    door d;
    end server;
    ew__address address;
    (void)state;
    if (geteuid() != 0)
        skip(); /* only root can become somebody else */
    world_init(&w);
    parse(&address);
    assert_int_equal(open_door(&d, &w, &address), EW_OK);
    assert_int_equal(chmod(folder, 0711), 0);
    assert_int_equal(chmod(path, 0666), 0);
    end_init(&server, &w);
    d.next = &server;
    pid_t pid = fork();
    if (pid == 0) {
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        char byte;
        bool ok =
            setuid(65534) == 0 && connect(fd, (struct sockaddr *)&address.storage, sizeof(struct sockaddr_un)) == 0;
        _exit(ok && read(fd, &byte, 1) == 0 ? 0 : 1);
    }
    run_until(&w, &server.n_closed, 1);
    assert_int_equal(server.why, EW_EACCESS);
    end_free(&server);
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    close_door(&d);
    world_done(&w);
}

/* ---- files ---- */

static void mode_of_the_file(void **state) {
    world w;
    door d;
    ew__address address;
    struct stat file;
    (void)state;
    world_init(&w);
    parse(&address);
    mode_t old = umask(0);
    assert_int_equal(open_door(&d, &w, &address), EW_OK);
    umask(old);
    assert_int_equal(stat(path, &file), 0);
    assert_int_equal(file.st_mode & 07777, 0600);
    close_door(&d);
    world_done(&w);
}

static void stale_file(void **state) {
    world w;
    door d;
    end server, client;
    ew__address address;
    (void)state;
    world_init(&w);
    parse(&address);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0); /* a server that died */
    assert_int_equal(bind(fd, (struct sockaddr *)&address.storage, sizeof(struct sockaddr_un)), 0);
    assert_int_equal(listen(fd, 1), 0);
    close(fd);
    assert_true(exists());
    assert_int_equal(ew__address_probe(&address), EW_OK);
    assert_int_equal(open_door(&d, &w, &address), EW_OK);
    end_init(&server, &w);
    d.next = &server;
    assert_int_equal(dial(&client, &w, path), EW_OK);
    run_until(&w, &d.n_connections, 1);
    end_close(&client);
    run_until(&w, &server.n_eof, 1);
    end_close(&server);
    close_door(&d);
    assert_false(exists());
    world_done(&w);
}

static void live_file(void **state) {
    world w;
    door first, second;
    ew__address address, same;
    (void)state;
    world_init(&w);
    parse(&address);
    parse(&same);
    assert_int_equal(open_door(&first, &w, &address), EW_OK);
    assert_int_equal(ew__address_probe(&same), EW_EADDRINUSE);
    assert_int_equal(open_door(&second, &w, &same), EW_EADDRINUSE);
    assert_true(exists());
    close_door(&first);
    assert_int_equal(open_door(&second, &w, &same), EW_OK);
    close_door(&second);
    world_done(&w);
}

static void no_socket(void **state) {
    world w;
    door d;
    ew__address address;
    (void)state;
    world_init(&w);
    parse(&address);
    close(open(path, O_CREAT | O_WRONLY, 0600));
    assert_int_equal(ew__address_probe(&address), EW_EEXISTS);
    assert_int_equal(open_door(&d, &w, &address), EW_EEXISTS);
    assert_int_equal(unlink(path), 0); /* it was still there */
    assert_int_equal(symlink("nowhere", path), 0);
    assert_int_equal(open_door(&d, &w, &address), EW_EEXISTS);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(ew__address_parse("unix:/no/such/folder/x", &address), EW_OK);
    assert_int_not_equal(open_door(&d, &w, &address), EW_OK);
    world_done(&w);
}

/* Somebody has put another file in the place of ours: it is not ours to remove. */
static void replaced_file(void **state) {
    world w;
    door d;
    ew__address address;
    (void)state;
    world_init(&w);
    parse(&address);
    assert_int_equal(open_door(&d, &w, &address), EW_OK);
    assert_int_equal(unlink(path), 0);
    close(open(path, O_CREAT | O_WRONLY, 0600));
    close_door(&d);
    assert_true(exists());
    assert_int_equal(unlink(path), 0);
    world_done(&w);
}

/* Several loops listen on one address: one file, one socket, and each gets connections. */
static void several_loops(void **state) {
    world w[2];
    door d[2];
    ew__address address;
    (void)state;
    unsigned before = 0;
    parse(&address);
    world_init(&w[0]);
    world_init(&w[1]);
    for (int round = 0; round < 3; round++) {
        end server, client;
        assert_int_equal(open_door(&d[0], &w[0], &address), EW_OK);
        assert_int_equal(open_door(&d[1], &w[1], &address), EW_OK);
        end_init(&server, &w[round % 2]);
        d[round % 2].next = &server; /* only this loop runs */
        assert_int_equal(dial(&client, &w[round % 2], path), EW_OK);
        run_until(&w[round % 2], &d[round % 2].n_connections, 1);
        end_close(&client);
        run_until(&w[round % 2], &server.n_eof, 1);
        end_close(&server);
        close_door(&d[round % 2]);
        assert_true(exists()); /* the other still listens */
        close_door(&d[(round + 1) % 2]);
        assert_false(exists());
        assert_true(round == 0 || count_descriptors() == before);
        before = count_descriptors();
    }
    world_done(&w[0]);
    world_done(&w[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(echo_and_half_close),
        cmocka_unit_test(much),
        cmocka_unit_test(peer_goes_while_we_write),
        cmocka_unit_test(stalled_reader),
        cmocka_unit_test(refused_connections),
        cmocka_unit_test(cannot_dial),
        cmocka_unit_test(relative_path),
        cmocka_unit_test(other_user),
        cmocka_unit_test(mode_of_the_file),
        cmocka_unit_test(stale_file),
        cmocka_unit_test(live_file),
        cmocka_unit_test(no_socket),
        cmocka_unit_test(replaced_file),
        cmocka_unit_test(several_loops),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
