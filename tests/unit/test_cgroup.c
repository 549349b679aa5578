/* SPDX-License-Identifier: MIT */
/* Tests of common/base/cgroup on fixture trees, and on the group of the test.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/cgroup.h"
#include "suite.h"

#define MIB(n) ((uint64_t)(n) << 20)
#define V1 "/sys/fs/cgroup/memory"
#define V2 "/sys/fs/cgroup"
#define V1_LINE(root)                                                          \
	"32 31 0:29 " root " " V1 " rw - cgroup cgroup rw,memory\n"
#define V2_LINE(root)                                                          \
	"30 23 0:26 " root " " V2 " rw,nosuid - cgroup2 cgroup2 rw\n"

static char root[64];

static void make_parents(char *path)
{
	for (char *at = path + strlen(root) + 1; (at = strchr(at, '/')); at++) {
		*at = '\0';
		ck_assert(mkdir(path, 0700) == 0 || errno == EEXIST);
		*at = '/';
	}
}

/* Write a file of the tree, and create its directories. */
static void put(const char *path, const char *text)
{
	char full[PATH_MAX];
	FILE *f;

	(void)snprintf(full, sizeof(full), "%s%s", root, path);
	make_parents(full);
	f = fopen(full, "we");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_ge(fputs(text, f), 0);
	ck_assert_int_eq(fclose(f), 0);
}

static void put_process(const char *groups, const char *mounts)
{
	put("/proc/self/cgroup", groups);
	put("/proc/self/mountinfo", mounts);
}

static void setup(void)
{
	(void)snprintf(root, sizeof(root), "%s/cgroup-XXXXXX", test_dir());
	ck_assert_ptr_nonnull(mkdtemp(root));
}

static void teardown(void)
{
	char command[128];

	(void)snprintf(command, sizeof(command), "rm -rf '%s'", root);
	ck_assert_int_eq(system(command), 0);
}

START_TEST(test_cgroup_without_any_has_no_limit)
{
	ck_assert(cgroup_memory_limit(root) == CGROUP_NO_LIMIT);
	put_process("", "1 0 0:1 / / rw - ext4 /dev/sda rw\n");
	ck_assert(cgroup_memory_limit(root) == CGROUP_NO_LIMIT);
	/* Lines that are cut short are ignored. */
	put_process("0:", "1 0 0:1 / - cgroup2\n1 0 - cgroup2 cgroup2 rw\n");
	ck_assert(cgroup_memory_limit(root) == CGROUP_NO_LIMIT);
}
END_TEST

START_TEST(test_cgroup_v2_reads_the_group_of_the_process)
{
	put_process("0::/system.slice/job\n", V2_LINE("/"));
	put(V2 "/system.slice/job/memory.max", "314572800\n");
	put(V2 "/system.slice/memory.max", "max\n");
	ck_assert_uint_eq(cgroup_memory_limit(root), MIB(300));
}
END_TEST

START_TEST(test_cgroup_v2_takes_the_smallest_limit_above)
{
	put_process("0::/a/b/c\n", V2_LINE("/"));
	put(V2 "/a/b/c/memory.max", "max\n");
	put(V2 "/a/b/memory.max", "536870912\n");
	put(V2 "/a/memory.max", "268435456\n");
	ck_assert_uint_eq(cgroup_memory_limit(root), MIB(256));
	put(V2 "/a/b/c/memory.max", "1048576\n");
	ck_assert_uint_eq(cgroup_memory_limit(root), MIB(1));
}
END_TEST

START_TEST(test_cgroup_v2_in_a_namespace_is_its_root)
{
	put_process("0::/\n", V2_LINE("/"));
	put(V2 "/memory.max", "104857600\n");
	ck_assert_uint_eq(cgroup_memory_limit(root), MIB(100));
}
END_TEST

/* The group of the container is bind-mounted, and the path of the process's
 * group begins at the root of the host. */
START_TEST(test_cgroup_v2_without_a_namespace_in_a_container)
{
	put_process("0::/docker/0123\n", V2_LINE("/docker/0123"));
	put(V2 "/memory.max", "104857600\n");
	ck_assert_uint_eq(cgroup_memory_limit(root), MIB(100));
	put_process("0::/docker/0123/inner\n", V2_LINE("/docker/0123"));
	put(V2 "/inner/memory.max", "52428800\n");
	ck_assert_uint_eq(cgroup_memory_limit(root), MIB(50));
	/* A group whose name only begins with this name is another group. */
	put_process("0::/docker/01234\n", V2_LINE("/docker/0123"));
	put(V2 "/4/memory.max", "1\n");
	ck_assert_uint_eq(cgroup_memory_limit(root), MIB(100));
}
END_TEST

START_TEST(test_cgroup_v2_outside_of_its_namespace_stays_below_the_mount)
{
	put_process("0::/../other\n", V2_LINE("/"));
	put(V2 "/memory.max", "104857600\n");
	put("/sys/fs/other/memory.max", "1\n");
	ck_assert_uint_eq(cgroup_memory_limit(root), MIB(100));
}
END_TEST

START_TEST(test_cgroup_v1_reads_the_memory_hierarchy)
{
	put_process("5:cpu,cpuacct:/wrong\n4:memory:/a/b\n1:name=systemd:/\n",
		"31 30 0:9 / /sys/fs/cgroup/cpu rw - cgroup cgroup "
		"rw,cpu\n" V1_LINE("/"));
	put(V1 "/a/b/memory.limit_in_bytes", "9223372036854771712\n");
	ck_assert(cgroup_memory_limit(root) == CGROUP_NO_LIMIT);
	put(V1 "/a/b/memory.limit_in_bytes", "314572800\n");
	ck_assert_uint_eq(cgroup_memory_limit(root), MIB(300));
	put(V1 "/a/memory.limit_in_bytes", "104857600\n");
	ck_assert_uint_eq(cgroup_memory_limit(root), MIB(100));
}
END_TEST

START_TEST(test_cgroup_v1_in_a_container_knows_hidden_parents)
{
	put_process("4:memory:/docker/0123\n", V1_LINE("/docker/0123"));
	put(V1 "/memory.limit_in_bytes", "314572800\n");
	put(V1 "/memory.stat",
		"cache 0\nhierarchical_memory_limit 104857600\ntotal_rss 0\n");
	ck_assert_uint_eq(cgroup_memory_limit(root), MIB(100));
}
END_TEST

START_TEST(test_cgroup_of_both_versions_takes_the_smaller)
{
	put_process("4:memory:/a\n0::/\n",
		V1_LINE("/") "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 "
			     "cgroup2 rw\n");
	put(V1 "/a/memory.limit_in_bytes", "314572800\n");
	put("/sys/fs/cgroup/unified/cgroup.procs", "1\n");
	ck_assert_uint_eq(cgroup_memory_limit(root), MIB(300));
}
END_TEST

START_TEST(test_cgroup_mount_may_have_blanks_in_its_name)
{
	put_process("0::/a b\n",
		"30 23 0:26 / /cgroups\\040here rw - cgroup2 none rw\n");
	put("/cgroups here/a b/memory.max", "104857600\n");
	ck_assert_uint_eq(cgroup_memory_limit(root), MIB(100));
}
END_TEST

#define CPU "/sys/fs/cgroup/cpu,cpuacct"

START_TEST(test_cgroup_v2_limits_processors_in_a_group_above)
{
	put_process("0::/pods/job\n", V2_LINE("/"));
	ck_assert(cgroup_processor_limit(root) == CGROUP_NO_LIMIT);
	put(V2 "/pods/job/cpu.max", "max 100000\n");
	ck_assert(cgroup_processor_limit(root) == CGROUP_NO_LIMIT);
	put(V2 "/pods/cpu.max", "450000 100000\n");
	ck_assert_uint_eq(cgroup_processor_limit(root), 4500);
	put(V2 "/pods/job/cpu.max", "50000 100000\n");
	ck_assert_uint_eq(cgroup_processor_limit(root), 500);
	put(V2 "/pods/job/cpu.max", "50000 0\n");
	ck_assert_uint_eq(cgroup_processor_limit(root), 4500);
}
END_TEST

START_TEST(test_cgroup_v1_limits_processors)
{
	put_process("4:cpu,cpuacct:/job\n3:memory:/other\n",
		"33 31 0:30 / " CPU " rw - cgroup cgroup rw,cpu,cpuacct\n");
	put(CPU "/job/cpu.cfs_quota_us", "-1\n");
	put(CPU "/job/cpu.cfs_period_us", "100000\n");
	ck_assert(cgroup_processor_limit(root) == CGROUP_NO_LIMIT);
	put(CPU "/job/cpu.cfs_quota_us", "200000\n");
	ck_assert_uint_eq(cgroup_processor_limit(root), 2000);
	ck_assert(cgroup_memory_limit(root) == CGROUP_NO_LIMIT);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("cgroup");
	TCase *t = case_with(s, "cgroup", setup, teardown);

	tcase_add_test(t, test_cgroup_without_any_has_no_limit);
	tcase_add_test(t, test_cgroup_v2_reads_the_group_of_the_process);
	tcase_add_test(t, test_cgroup_v2_takes_the_smallest_limit_above);
	tcase_add_test(t, test_cgroup_v2_in_a_namespace_is_its_root);
	tcase_add_test(t, test_cgroup_v2_without_a_namespace_in_a_container);
	tcase_add_test(t,
		test_cgroup_v2_outside_of_its_namespace_stays_below_the_mount);
	tcase_add_test(t, test_cgroup_v1_reads_the_memory_hierarchy);
	tcase_add_test(t, test_cgroup_v1_in_a_container_knows_hidden_parents);
	tcase_add_test(t, test_cgroup_of_both_versions_takes_the_smaller);
	tcase_add_test(t, test_cgroup_mount_may_have_blanks_in_its_name);
	tcase_add_test(t, test_cgroup_v2_limits_processors_in_a_group_above);
	tcase_add_test(t, test_cgroup_v1_limits_processors);
	return run_suite(s);
}
