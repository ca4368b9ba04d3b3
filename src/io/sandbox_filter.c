/*
 * io/sandbox_filter.c: see sandbox_filter.h.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "io/sandbox_filter.h"
#include <errno.h>
#include <linux/audit.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#if defined(__x86_64__) && !defined(__ILP32__)
#define NATIVE AUDIT_ARCH_X86_64
#define X32_BIT 0x40000000U /* x32 calls have the architecture of x86-64 and numbers of their own */
#elif defined(__aarch64__) && defined(__AARCH64EL__)
#define NATIVE AUDIT_ARCH_AARCH64
#endif

#ifdef NATIVE

#define N_OF(list) (sizeof(list) / sizeof *(list))
#define DENY (SECCOMP_RET_ERRNO | EPERM)
#define NAMESPACES                                                                                                     \
    (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET)

/* Headers of older kernels lack it; the number is the same on all architectures. */
#define OPEN_TREE_ATTR 467

static const uint32_t denied[] = {
    /* other processes */
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_process_madvise,
    SYS_kcmp,
    SYS_pidfd_getfd,
    SYS_move_pages,
    SYS_migrate_pages,
    /* code in the kernel, and interfaces with a long record of holes */
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_kexec_load,
    SYS_kexec_file_load,
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    SYS_io_uring_setup,
    SYS_io_uring_enter,
    SYS_io_uring_register,
    /* mounts, and files reached without their path */
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_open_tree,
    SYS_move_mount,
    SYS_fsopen,
    SYS_fsconfig,
    SYS_fsmount,
    SYS_fspick,
    SYS_mount_setattr,
    OPEN_TREE_ATTR,
    SYS_open_by_handle_at,
    SYS_fanotify_init,
    /* keys of the kernel */
    SYS_add_key,
    SYS_request_key,
    SYS_keyctl,
    /* the machine */
    SYS_reboot,
    SYS_swapon,
    SYS_swapoff,
    SYS_sethostname,
    SYS_setdomainname,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_adjtimex,
    SYS_clock_adjtime,
    SYS_acct,
    SYS_quotactl,
    SYS_quotactl_fd,
    SYS_syslog,
    SYS_vhangup,
    SYS_nfsservctl,
#ifdef __x86_64__
    SYS_ioperm,
    SYS_iopl,
    SYS_modify_ldt,
    SYS_create_module,
    SYS_get_kernel_syms,
    SYS_query_module,
    SYS__sysctl,
    SYS_uselib,
    SYS_ustat,
    SYS_sysfs,
#endif
};

/* What only a process needs that becomes, or isolates, another program. */
static const uint32_t denied_without_children[] = {SYS_execve, SYS_execveat, SYS_unshare, SYS_setns, SYS_personality};

/* Push input into a terminal, which the shell behind it would run. */
static const uint32_t denied_ioctls[] = {TIOCSTI, TIOCLINUX};

typedef struct program {
    struct sock_filter *code;
    size_t n;
} program;

_Static_assert(2 * (N_OF(denied) + N_OF(denied_without_children) + N_OF(denied_ioctls)) + 24 < EW__SANDBOX_FILTER_MAX,
               "the filter fits");

static void add(program *p, uint16_t code, uint32_t k, uint8_t if_true, uint8_t if_false) {
    p->code[p->n++] = (struct sock_filter){.code = code, .jt = if_true, .jf = if_false, .k = k};
}

static void load(program *p, size_t offset) { add(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0); }

static void answer(program *p, uint32_t action) { add(p, BPF_RET | BPF_K, action, 0, 0); }

/* If the loaded word is the value, the filter ends with the action. */
static void answer_if(program *p, uint32_t value, uint32_t action) {
    add(p, BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
    answer(p, action);
}

static void deny_all(program *p, const uint32_t *numbers, size_t n) {
    for (size_t i = 0; i < n; i++)
        answer_if(p, numbers[i], DENY);
}

/* Both processors are little-endian: the lower half of an argument comes first. */
static size_t argument(unsigned i) { return offsetof(struct seccomp_data, args) + i * sizeof(uint64_t); }

static void check_table(program *p) {
    load(p, offsetof(struct seccomp_data, arch));
    add(p, BPF_JMP | BPF_JEQ | BPF_K, NATIVE, 1, 0);
    answer(p, SECCOMP_RET_KILL_PROCESS);
    load(p, offsetof(struct seccomp_data, nr));
#ifdef X32_BIT
    add(p, BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 1);
    answer(p, DENY);
#endif
}

static void check_ioctl(program *p) {
    add(p, BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 2 * N_OF(denied_ioctls) + 2);
    load(p, argument(1));
    deny_all(p, denied_ioctls, N_OF(denied_ioctls));
    answer(p, SECCOMP_RET_ALLOW);
}

/*
 * clone3 has its flags in memory, which a filter cannot read: without clone3 the C library uses
 * clone.
 */
static void check_clone(program *p) {
    answer_if(p, SYS_clone3, SECCOMP_RET_ERRNO | ENOSYS);
    add(p, BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4);
    load(p, argument(0));
    add(p, BPF_JMP | BPF_JSET | BPF_K, NAMESPACES, 0, 1);
    answer(p, DENY);
    answer(p, SECCOMP_RET_ALLOW);
}

size_t ew__sandbox_filter(bool children, struct sock_filter *out) {
    program p = {.code = out};
    check_table(&p);
    deny_all(&p, denied, N_OF(denied));
    if (!children) {
        deny_all(&p, denied_without_children, N_OF(denied_without_children));
        check_clone(&p);
    }
    check_ioctl(&p);
    answer(&p, SECCOMP_RET_ALLOW);
    return p.n;
}

#else

size_t ew__sandbox_filter(bool children, struct sock_filter *out) {
    (void)children;
    (void)out;
    return 0;
}

#endif
