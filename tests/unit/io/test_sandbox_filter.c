/*
 * tests/unit/io/test_sandbox_filter.c: the system call filter, interpreted: which calls it denies,
 * with and without child processes, and that other tables of system calls do not lead around it.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "io/sandbox_filter.h"
#include <errno.h>
#include <linux/audit.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include <cmocka.h>

#if defined(__x86_64__)
#define NATIVE AUDIT_ARCH_X86_64
#define FOREIGN AUDIT_ARCH_I386
#else
#define NATIVE AUDIT_ARCH_AARCH64
#define FOREIGN AUDIT_ARCH_ARM
#endif
#define DENY (SECCOMP_RET_ERRNO | EPERM)
#define CALLS 1024 /* above every number that there is */

typedef struct filter {
    struct sock_filter code[EW__SANDBOX_FILTER_MAX];
    size_t n;
} filter;

static filter make(bool children) {
    filter f;
    memset(&f, 0, sizeof f);
    f.n = ew__sandbox_filter(children, f.code);
    assert_in_range(f.n, 1, EW__SANDBOX_FILTER_MAX);
    return f;
}

static bool jumps(const struct sock_filter *at, uint32_t word) {
    switch (BPF_OP(at->code)) {
    case BPF_JEQ:
        return word == at->k;
    case BPF_JGE:
        return word >= at->k;
    case BPF_JSET:
        return (word & at->k) != 0;
    default:
        fail_msg("unexpected jump 0x%x", at->code);
        return false;
    }
}

/* What the kernel's interpreter would answer. */
static uint32_t run(const filter *f, const struct seccomp_data *data) {
    uint32_t word = 0;
    for (size_t i = 0; i < f->n; i++) {
        const struct sock_filter *at = &f->code[i];
        if (at->code == (BPF_RET | BPF_K)) {
            return at->k;
        }
        if (at->code == (BPF_LD | BPF_W | BPF_ABS)) {
            assert_true(at->k % 4 == 0 && at->k + sizeof word <= sizeof *data);
            memcpy(&word, (const char *)data + at->k, sizeof word);
        } else {
            assert_int_equal(BPF_CLASS(at->code), BPF_JMP);
            i += jumps(at, word) ? at->jt : at->jf;
        }
    }
    fail_msg("the filter ends without an answer");
    return 0;
}

static uint32_t ask(bool children, long number, uint64_t first, uint64_t second) {
    filter f = make(children);
    return run(&f, &(struct seccomp_data){.nr = (int)number, .arch = NATIVE, .args = {first, second}});
}

static void test_io_sandbox_filter__denies(void **state) {
    static const long numbers[] = {
        SYS_ptrace,     SYS_mount,   SYS_umount2,      SYS_pivot_root,        SYS_chroot,
        SYS_kexec_load, SYS_bpf,     SYS_init_module,  SYS_finit_module,      SYS_delete_module,
        SYS_keyctl,     SYS_add_key, SYS_request_key,  SYS_perf_event_open,   SYS_userfaultfd,
        SYS_reboot,     SYS_swapon,  SYS_swapoff,      SYS_io_uring_setup,    SYS_open_by_handle_at,
        SYS_fsopen,     SYS_fsmount, SYS_move_mount,   SYS_process_vm_writev, SYS_pidfd_getfd,
        SYS_syslog,     SYS_acct,    SYS_clock_settime};
    (void)state;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        assert_int_equal(ask(true, numbers[i], 0, 0), DENY);
        assert_int_equal(ask(false, numbers[i], 0, 0), DENY);
    }
}

static void test_io_sandbox_filter__allows(void **state) {
    static const long numbers[] = {
        SYS_read,       SYS_write,   SYS_openat,     SYS_close,       SYS_mmap,           SYS_mprotect,
        SYS_futex,      SYS_socket,  SYS_bind,       SYS_listen,      SYS_accept4,        SYS_connect,
        SYS_sendmsg,    SYS_recvmsg, SYS_epoll_ctl,  SYS_epoll_pwait, SYS_fsync,          SYS_fcntl,
        SYS_unlinkat,   SYS_mkdirat, SYS_renameat,   SYS_getrandom,   SYS_kill,           SYS_tgkill,
        SYS_pidfd_open, SYS_wait4,   SYS_exit_group, SYS_prctl,       SYS_seccomp,        SYS_rt_sigaction,
        SYS_setrlimit,  SYS_statx,   SYS_prlimit64,  SYS_close_range, SYS_set_robust_list};
    (void)state;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        assert_int_equal(ask(true, numbers[i], 0, 0), SECCOMP_RET_ALLOW);
        assert_int_equal(ask(false, numbers[i], 0, 0), SECCOMP_RET_ALLOW);
    }
}

/*
 * Every number has one of three answers, and what is denied with children is also denied without.
 */
static void test_io_sandbox_filter__every_call(void **state) {
    size_t with = 0, without = 0;
    (void)state;
    for (long number = 0; number < CALLS; number++) {
        uint32_t loose = ask(true, number, 0, 0), strict = ask(false, number, 0, 0);
        assert_true(loose == SECCOMP_RET_ALLOW || loose == DENY);
        assert_true(strict == SECCOMP_RET_ALLOW || strict == DENY || number == SYS_clone3);
        assert_true(loose == SECCOMP_RET_ALLOW || strict == DENY);
        with += loose == DENY;
        without += strict != SECCOMP_RET_ALLOW;
    }
    assert_int_equal(without, with + 6); /* execve, execveat, unshare, setns, personality, clone3 */
}

static void test_io_sandbox_filter__children(void **state) {
    const uint64_t thread = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SETTLS;
    (void)state;
    assert_int_equal(ask(true, SYS_execve, 0, 0), SECCOMP_RET_ALLOW);
    assert_int_equal(ask(true, SYS_clone3, 0, 0), SECCOMP_RET_ALLOW);
    assert_int_equal(ask(true, SYS_clone, CLONE_NEWUSER, 0), SECCOMP_RET_ALLOW);
    assert_int_equal(ask(false, SYS_execve, 0, 0), DENY);
    assert_int_equal(ask(false, SYS_execveat, 0, 0), DENY);
    assert_int_equal(ask(false, SYS_clone3, 0, 0), SECCOMP_RET_ERRNO | ENOSYS);
    assert_int_equal(ask(false, SYS_clone, thread, 0), SECCOMP_RET_ALLOW);
    assert_int_equal(ask(false, SYS_clone, 17 /* SIGCHLD: fork */, 0), SECCOMP_RET_ALLOW);
    assert_int_equal(ask(false, SYS_clone, CLONE_NEWUSER, 0), DENY);
    assert_int_equal(ask(false, SYS_clone, thread | CLONE_NEWNET, 0), DENY);
}

/* The kernel takes the lower 32 bits of a request: others must not hide it. */
static void test_io_sandbox_filter__terminal(void **state) {
    (void)state;
    for (int children = 0; children < 2; children++) {
        assert_int_equal(ask(children, SYS_ioctl, 0, TIOCSTI), DENY);
        assert_int_equal(ask(children, SYS_ioctl, 0, TIOCLINUX), DENY);
        assert_int_equal(ask(children, SYS_ioctl, 0, TIOCSTI | UINT64_C(1) << 32), DENY);
        assert_int_equal(ask(children, SYS_ioctl, 0, TCGETS), SECCOMP_RET_ALLOW);
        assert_int_equal(ask(children, SYS_ioctl, 0, FIONREAD), SECCOMP_RET_ALLOW);
    }
}

static void test_io_sandbox_filter__other_tables(void **state) {
    (void)state;
    for (int children = 0; children < 2; children++) {
        filter f = make(children);
        for (int number = 0; number < CALLS; number++) {
            assert_int_equal(run(&f, &(struct seccomp_data){.nr = number, .arch = FOREIGN}), SECCOMP_RET_KILL_PROCESS);
#if defined(__x86_64__)
            struct seccomp_data x32 = {.nr = number | 0x40000000, .arch = NATIVE};
            assert_int_equal(run(&f, &x32), DENY);
#endif
        }
    }
}

#define TEST(name) cmocka_unit_test(test_io_sandbox_filter__##name)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(denies), TEST(allows), TEST(every_call), TEST(children), TEST(terminal), TEST(other_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
