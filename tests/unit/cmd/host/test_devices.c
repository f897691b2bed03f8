/* SPDX-License-Identifier: Apache-2.0 */
/* The files of disks, interfaces and mounts: what they tell, which names are left out, and that nothing is believed. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/statvfs.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/text/pattern.h"
#include "cmd/host/scrapers.h"
#include "tests/unit/cmd/host/reading_text.h"

static struct host_config config;

static int setup(void **state)
{
	static struct host_reading r;

	config = (struct host_config){ .root = "" };
	*state = &r;
	return host_reading_init(&r, &config);
}

static int teardown(void **state)
{
	host_reading_fini(*state);
	return 0;
}

static void tells(const struct host_reading *r, const char *expected)
{
	AUTO(buf_fini) struct buf out = BUF_EMPTY;

	reading_text(r, &out);
	assert_string_equal(buf_text(&out), expected);
	assert_false(r->failed);
}

static void test_diskstats(void **state)
{
	struct host_reading *r = *state;

	assert_int_equal(host_parse_diskstats(r, STR("   8       0 sda 10 1 200 1500 20 2 400 2500 3 4000 5000 0 0 0 0 0 0\n"
						     "   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
						     " 252       0 vda 1 2 3\n"
						     "   8       1 sda1 1 0 36028797018963968 1 1 0 1 1 0 1 1\n"
						     "\n")),
			 0);
	tells(r, "system.disk.io device=sda,direction=read 102400\n"
		 "system.disk.io device=sda,direction=write 204800\n"
		 "system.disk.operations device=sda,direction=read 10\n"
		 "system.disk.operations device=sda,direction=write 20\n"
		 "system.disk.io_time device=sda 4.000\n"
		 "system.disk.operation_time device=sda,direction=read 1.500\n"
		 "system.disk.operation_time device=sda,direction=write 2.500\n"
		 "system.disk.weighted_io_time device=sda 5.000\n"
		 "system.disk.merged device=sda,direction=read 1\n"
		 "system.disk.merged device=sda,direction=write 2\n"
		 "system.disk.pending_operations device=sda 3\n");
	assert_int_equal(r->bad_lines, 3); /* too short, too many sectors, empty */
	assert_int_equal(host_parse_diskstats(r, STR("")), 0);
}

#define HEADS                                                                                                              \
	"Inter-|   Receive                    |  Transmit\n"                                                               \
	" face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier " \
	"compressed\n"

static void test_net_dev(void **state)
{
	struct host_reading *r = *state;

	assert_int_equal(host_parse_net_dev(r, STR(HEADS "    lo: 100 10 0 0 0 0 0 0 100 10 0 0 0 0 0 0\n"
							 "eth0:1:1234 56 7 8 9 1 1 1 4321 65 87 78 1 1 1 1\n"
							 "nothing\n : 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n"
							 "bad: 1 2 3 x\n")),
			 0);
	tells(r, "system.network.io device=lo,direction=receive 100\n"
		 "system.network.io device=lo,direction=transmit 100\n"
		 "system.network.io device=eth0:1,direction=receive 1234\n"
		 "system.network.io device=eth0:1,direction=transmit 4321\n"
		 "system.network.packets device=lo,direction=receive 10\n"
		 "system.network.packets device=lo,direction=transmit 10\n"
		 "system.network.packets device=eth0:1,direction=receive 56\n"
		 "system.network.packets device=eth0:1,direction=transmit 65\n"
		 "system.network.errors device=lo,direction=receive 0\n"
		 "system.network.errors device=lo,direction=transmit 0\n"
		 "system.network.errors device=eth0:1,direction=receive 7\n"
		 "system.network.errors device=eth0:1,direction=transmit 87\n"
		 "system.network.dropped device=lo,direction=receive 0\n"
		 "system.network.dropped device=lo,direction=transmit 0\n"
		 "system.network.dropped device=eth0:1,direction=receive 8\n"
		 "system.network.dropped device=eth0:1,direction=transmit 78\n");
	assert_int_equal(r->bad_lines, 3);
	assert_int_equal(host_parse_net_dev(r, STR("lo: 1 2\n")), -EBADMSG);
}

/* Names that are not wanted tell nothing, and are no loss; those that are no text are a bad line. */
static void test_filters(void **state)
{
	struct host_name names[] = { { .text = "^veth" }, { .text = "lo" } };
	struct pattern_error why;
	struct host_reading *r = *state;

	assert_int_equal(pattern_new(names[0].text, 0, &names[0].pattern, &why), 0);
	config.filters[HOST_BY_INTERFACE].exclude = (struct host_names){ names, 2 };
	config.is_off[HOST_NETWORK_PACKETS] = config.is_off[HOST_NETWORK_ERRORS] = config.is_off[HOST_NETWORK_DROPPED] =
		true;
	assert_int_equal(host_parse_net_dev(r, STR(HEADS "lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n"
							 "veth1: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n"
							 "lo1: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n"
							 "\xff: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n")),
			 0);
	tells(r, "system.network.io device=lo1,direction=receive 1\nsystem.network.io device=lo1,direction=transmit 9\n");
	assert_int_equal(r->bad_lines, 1);
	assert_int_equal(r->left_out, 0);
	pattern_free(names[0].pattern);
	assert_true(host_filter_passes(&(struct host_filter){ .include = { &names[1], 1 } }, "lo", 2));
	assert_false(host_filter_passes(&(struct host_filter){ .include = { &names[1], 1 } }, "lo1", 3));
}

static void test_many_disks(void **state)
{
	AUTO(buf_fini) struct buf text = BUF_EMPTY;
	struct host_reading *r = *state;

	for (int i = 0; i < HOST_DEVICES_MAX + 5; i++)
		buf_printf(&text, "8 0 sd%d 1 1 1 1 1 1 1 1 1 1 1\n", i);
	assert_int_equal(host_parse_diskstats(r, (struct str){ buf_text(&text), (uint32_t)text.len }), 0);
	assert_int_equal(r->points, HOST_DEVICES_MAX * 11);
	assert_int_equal(r->left_out, 5);
}

/* --- mounts --- */

static int measure(const char *path, struct statvfs *ret)
{
	*ret = (struct statvfs){
		.f_frsize = 4096, .f_blocks = 100, .f_bfree = 40, .f_bavail = 30, .f_files = 10, .f_ffree = 4
	};
	if (!strcmp(path, "/root/huge"))
		ret->f_blocks = UINT64_MAX;
	return strcmp(path, "/root/gone") ? 0 : -1;
}

static void test_mounts(void **state)
{
	struct host_reading *r = *state;

	config.root = "/root";
	assert_int_equal(host_parse_mounts(r,
					   STR("21 1 8:1 / /old rw shared:1 - ext4 /dev/sda1 rw\n"
					       "22 1 8:1 / /a\\040b ro,noatime - ext4 /dev/sda1 rw\n"
					       "23 1 0:5 / /proc rw - proc proc rw\n"
					       "24 1 8:2 / /old relatime shared:1 master:2 - xfs /dev/sda2 rw\n"
					       "25 1 8:2 / /gone rw - ext4 /dev/sda3 rw\n"
					       "26 1 8:2 / /huge rw - ext4 /dev/sda3 rw\n"
					       "27 1 8:2 / /\\000 rw - ext4 /dev/sda3 rw\n"
					       "28 1 8:2 / /x rw - ext4\n29 1 8:2 / /x rw\n\n"),
					   STR("nodev\tproc\n\text4\n\txfs\n"), measure),
			 0);
	tells(r, "system.filesystem.usage device=/dev/sda2,mode=unknown,mountpoint=/old,type=xfs,state=used 245760\n"
		 "system.filesystem.usage device=/dev/sda2,mode=unknown,mountpoint=/old,type=xfs,state=free 122880\n"
		 "system.filesystem.usage device=/dev/sda2,mode=unknown,mountpoint=/old,type=xfs,state=reserved 40960\n"
		 "system.filesystem.usage device=/dev/sda1,mode=ro,mountpoint=/a b,type=ext4,state=used 245760\n"
		 "system.filesystem.usage device=/dev/sda1,mode=ro,mountpoint=/a b,type=ext4,state=free 122880\n"
		 "system.filesystem.usage device=/dev/sda1,mode=ro,mountpoint=/a b,type=ext4,state=reserved 40960\n"
		 "system.filesystem.usage device=/dev/sda3,mode=rw,mountpoint=/huge,type=ext4,state=free 122880\n"
		 "system.filesystem.usage device=/dev/sda3,mode=rw,mountpoint=/huge,type=ext4,state=reserved 40960\n"
		 "system.filesystem.inodes.usage device=/dev/sda2,mode=unknown,mountpoint=/old,type=xfs,state=used 6\n"
		 "system.filesystem.inodes.usage device=/dev/sda2,mode=unknown,mountpoint=/old,type=xfs,state=free 4\n"
		 "system.filesystem.inodes.usage device=/dev/sda1,mode=ro,mountpoint=/a b,type=ext4,state=used 6\n"
		 "system.filesystem.inodes.usage device=/dev/sda1,mode=ro,mountpoint=/a b,type=ext4,state=free 4\n"
		 "system.filesystem.inodes.usage device=/dev/sda3,mode=rw,mountpoint=/huge,type=ext4,state=used 6\n"
		 "system.filesystem.inodes.usage device=/dev/sda3,mode=rw,mountpoint=/huge,type=ext4,state=free 4\n");
	assert_int_equal(r->left_out, 1);
	assert_int_equal(r->bad_lines, 5); /* a NUL, no device, no type, an empty line, too many bytes */
}

static void test_virtual(void **state)
{
	struct host_reading *r = *state;

	config.is_off[HOST_FILESYSTEM_USAGE] = config.has_virtual = true;
	assert_int_equal(host_parse_mounts(r, STR("23 1 0:5 / /proc rw - proc proc rw\n"), STR(""), measure), 0);
	tells(r, "system.filesystem.inodes.usage device=proc,mode=rw,mountpoint=/proc,type=proc,state=used 6\n"
		 "system.filesystem.inodes.usage device=proc,mode=rw,mountpoint=/proc,type=proc,state=free 4\n");
	assert_int_equal(host_parse_mounts(r, STR("23 1 0:5 / /tank rw - zfs tank rw\n"), STR("nodev\tzfs\n"), measure), 0);
	assert_int_equal(r->points, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_diskstats, setup, teardown),
		cmocka_unit_test_setup_teardown(test_net_dev, setup, teardown),
		cmocka_unit_test_setup_teardown(test_filters, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many_disks, setup, teardown),
		cmocka_unit_test_setup_teardown(test_mounts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_virtual, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
