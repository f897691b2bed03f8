/* SPDX-License-Identifier: Apache-2.0 */
/* The cut has each type and member that an object can name where the kernel has it, as libbpf reads the kernel's own, and
 * nothing else; bytes that are no types are refused. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/kernel/kernel_types.h"
#include "agent/kernel/kernel_version.h"
#include "base/cleanup.h"
#include "agent/kernel/sampler_state.h"
#include "bpf/offcpu.skel.h"
#include "bpf/runtime/python.skel.h"
#include "bpf/sampler.skel.h"
#include "tests/unit/descriptors.h"

static void free_btf(struct btf **btf)
{
	btf__free(*btf);
}

static const struct btf_type *without_modifiers(const struct btf *btf, uint32_t id)
{
	const struct btf_type *t = btf__type_by_id(btf, id);

	while (btf_is_mod(t) || btf_is_typedef(t))
		t = btf__type_by_id(btf, t->type);
	return t;
}

/* The bits from the beginning of @t, a struct or union, to its member @name, also in members without a name. -1: none. */
static int64_t place_of(const struct btf *btf, const struct btf_type *t, const char *name, uint32_t *type_ret,
			uint32_t *bits_ret)
{
	const struct btf_member *m = btf_members(t);

	for (uint32_t i = 0; i < btf_vlen(t); i++) {
		const char *own = btf__name_by_offset(btf, m[i].name_off);
		const struct btf_type *of = without_modifiers(btf, m[i].type);
		int64_t inner = -1;

		if (*own && !strcmp(own, name)) {
			*type_ret = m[i].type;
			*bits_ret = btf_member_bitfield_size(t, i);
			return btf_member_bit_offset(t, i);
		}
		if (!*own && btf_is_composite(of))
			inner = place_of(btf, of, name, type_ret, bits_ret);
		if (inner >= 0)
			return inner + btf_member_bit_offset(t, i);
	}
	return -1;
}

/* Types @a and @b, by value, are of one kind and size; arrays of one length and element. */
static void assert_same(const struct btf *all, uint32_t a, const struct btf *cut, uint32_t b)
{
	const struct btf_type *one = without_modifiers(all, a), *other = without_modifiers(cut, b);

	if (btf_kind(one) == BTF_KIND_ENUM64)
		return;
	assert_int_equal(btf_kind(one), btf_kind(other));
	if (btf_is_array(one)) {
		assert_int_equal(btf_array(one)->nelems, btf_array(other)->nelems);
		assert_same(all, btf_array(one)->type, cut, btf_array(other)->type);
	} else if (!btf_is_ptr(one)) {
		assert_int_equal(one->size, other->size);
		assert_string_equal(btf__name_by_offset(all, one->name_off), btf__name_by_offset(cut, other->name_off));
	}
	if (btf_is_int(one))
		assert_int_equal(btf_int_encoding(one), btf_int_encoding(other));
}

/* Compares each member that a struct of @local has in @all. How many there were. */
static unsigned compare(const struct btf *all, const struct btf *cut, const struct btf *local)
{
	unsigned compared = 0;

	for (uint32_t id = 1; id < btf__type_cnt(local); id++) {
		const struct btf_type *mine = btf__type_by_id(local, id), *one, *other;
		char name[128];
		int a, b;

		if (!btf_is_composite(mine))
			continue;
		snprintf(name, sizeof(name), "%s", btf__name_by_offset(local, mine->name_off));
		if (strstr(name, "___"))
			*strstr(name, "___") = '\0';
		a = *name ? btf__find_by_name_kind(all, name, btf_kind(mine)) : -ENOENT;
		b = *name ? btf__find_by_name_kind(cut, name, btf_kind(mine)) : -ENOENT;
		assert_int_equal(a > 0, b > 0);
		if (a <= 0)
			continue;
		one = btf__type_by_id(all, (uint32_t)a);
		other = btf__type_by_id(cut, (uint32_t)b);
		assert_int_equal(one->size, other->size);
		for (uint32_t i = 0; i < btf_vlen(mine); i++) {
			const char *member = btf__name_by_offset(local, btf_members(mine)[i].name_off);
			uint32_t types[2], bits[2];
			int64_t at = place_of(all, one, member, &types[0], &bits[0]);

			assert_int_equal(at, place_of(cut, other, member, &types[1], &bits[1]));
			if (at < 0)
				continue;
			assert_int_equal(bits[0], bits[1]);
			assert_same(all, types[0], cut, types[1]);
			compared++;
		}
	}
	return compared;
}

static struct btf *cut_of(const struct btf *all, const struct btf *local)
{
	struct btf *cut = NULL;
	uint32_t len;
	const void *bytes = btf__raw_data(all, &len);

	assert_int_equal(kernel_types_cut(bytes, len, local, &cut), 0);
	return cut;
}

static void objects_find_in_it_what_this_kernel_has(void **state)
{
	AUTO(free_btf) struct btf *all = access(KERNEL_BTF, R_OK) ? NULL : btf__parse_raw(KERNEL_BTF);
	struct sampler_bpf *sampler = sampler_bpf__open();
	struct offcpu_bpf *offcpu = offcpu_bpf__open();
	struct python_bpf *python = python_bpf__open();
	const struct bpf_object *objects[] = { sampler->obj, offcpu->obj, python->obj };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(objects) && all; i++) {
		const struct btf *local = bpf_object__btf(objects[i]);
		AUTO(free_btf) struct btf *cut = cut_of(all, local);
		uint32_t len;

		assert_true(compare(all, cut, local) > (i < 2 ? 40 : 10));
		(void)btf__raw_data(cut, &len);
		assert_true(len < 64 << 10);
	}
	sampler_bpf__destroy(sampler);
	offcpu_bpf__destroy(offcpu);
	python_bpf__destroy(python);
	if (!all) {
		print_message("this kernel does not show its types (" KERNEL_BTF "): they are not compared\n");
		skip();
	}
}

/* A kernel with a type of each kind. */
static struct btf *made_up(void)
{
	struct btf *all = btf__new_empty();
	int number = btf__add_int(all, "int", 4, BTF_INT_SIGNED), pointer, array, inner, typedefed, state_type, wide, none;

	pointer = btf__add_ptr(all, number + 20);
	array = btf__add_array(all, number, number, 7);
	inner = btf__add_struct(all, "inner", 12);
	btf__add_field(all, "left_out", number, 0, 0);
	btf__add_field(all, "wanted", number, 64, 0);
	typedefed = btf__add_typedef(all, "inner_t", btf__add_const(all, btf__add_volatile(all, inner)));
	state_type = btf__add_enum(all, "state", 4);
	btf__add_enum_value(all, "ON", 5);
	wide = btf__add_enum64(all, "wide", 8, false);
	btf__add_enum64_value(all, "WIDE", 1ull << 40);
	none = btf__add_union(all, "", 8);
	btf__add_field(all, "hidden", pointer, 0, 0);
	btf__add_field(all, "left_out", number, 0, 0);
	btf__add_struct(all, "task", 128);
	btf__add_field(all, "left_out", number, 0, 0);
	btf__add_field(all, "pointer", pointer, 64, 0);
	btf__add_field(all, "array", array, 128, 0);
	btf__add_field(all, "inner", typedefed, 384, 0);
	btf__add_field(all, "state", state_type, 512, 0);
	btf__add_field(all, "wide", wide, 576, 0);
	btf__add_field(all, "", none, 640, 0);
	btf__add_field(all, "flag", number, 705, 1);
	btf__add_func_proto(all, number);
	btf__add_func_param(all, "p", pointer);
	btf__add_func(all, "f", BTF_FUNC_GLOBAL, btf__type_cnt(all) - 1);
	btf__add_var(all, "v", BTF_VAR_STATIC, number);
	btf__add_datasec(all, "d", 4);
	btf__add_datasec_var_info(all, btf__type_cnt(all) - 2, 0, 4);
	btf__add_fwd(all, "fwd", BTF_FWD_STRUCT);
	btf__add_float(all, "float", 4);
	btf__add_type_tag(all, "user", number);
	btf__add_decl_tag(all, "tag", number, -1);
	btf__add_restrict(all, pointer);
	btf__add_struct(all, "unwanted", 4);
	btf__add_field(all, "wanted", number, 0, 0);
	return all;
}

/* An object that names some of it. */
static struct btf *object(void)
{
	static const char *const names[] = { "pointer", "array", "inner", "state", "wide", "hidden", "flag", "missing" };
	struct btf *local = btf__new_empty();
	int number = btf__add_int(local, "int", 4, BTF_INT_SIGNED);

	btf__add_struct(local, "task___old", 64);
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		btf__add_field(local, names[i], number, (uint32_t)(64 * i), 0);
	btf__add_struct(local, "ours", 4);
	btf__add_field(local, "wanted", number, 0, 0);
	btf__add_enum(local, "state", 4);
	return local;
}

static void only_that_is_in_it(void **state)
{
	AUTO(free_btf) struct btf *all = made_up(), *local = object(), *cut = cut_of(all, local);
	uint32_t type, bits;
	const struct btf_type *t;
	int id;

	(void)state;
	assert_int_equal(compare(all, cut, local), 7);
	id = btf__find_by_name_kind(cut, "inner", BTF_KIND_STRUCT);
	assert_true(id > 0);
	t = btf__type_by_id(cut, (uint32_t)id);
	assert_int_equal(btf_vlen(t), 1);
	assert_int_equal(place_of(cut, t, "wanted", &type, &bits), 64);
	t = btf__type_by_id(cut, (uint32_t)btf__find_by_name_kind(cut, "task", BTF_KIND_STRUCT));
	assert_int_equal(btf_vlen(t), 7);
	assert_int_equal(place_of(cut, t, "flag", &type, &bits), 705);
	assert_int_equal(bits, 1);
	t = btf__type_by_id(cut, (uint32_t)btf__find_by_name_kind(cut, "state", BTF_KIND_ENUM));
	assert_int_equal(btf_vlen(t), 1);
	assert_int_equal(btf_enum(t)->val, 5);
	assert_true(btf__find_by_name(cut, "unwanted") < 0);
	assert_true(btf__find_by_name(cut, "float") < 0);
}

/* Every beginning of the bytes, and bytes with one changed: refused or cut, within their bounds. */
static void what_is_no_types_is_refused(void **state)
{
	AUTO(free_btf) struct btf *all = made_up(), *local = object();
	uint32_t len;
	const void *bytes = btf__raw_data(all, &len);

	(void)state;
	for (uint32_t n = 0; n < len; n++) {
		void *part = malloc(n ? n : 1);
		struct btf *cut = NULL;

		memcpy(part, bytes, n);
		assert_int_equal(kernel_types_cut(part, n, local, &cut), -EINVAL);
		assert_null(cut);
		free(part);
	}
	for (uint32_t i = 0; i < len; i++) {
		uint8_t *changed = malloc(len);
		struct btf *cut = NULL;

		memcpy(changed, bytes, len);
		changed[i] ^= 0xff;
		(void)kernel_types_cut(changed, len, local, &cut);
		btf__free(cut);
		free(changed);
	}
}

static void the_file_takes_the_last_object(void **state)
{
	const struct bpf_object_open_opts *opts = kernel_types_opts();
	struct sampler_bpf *sampler = sampler_bpf__open_opts(opts);
	struct python_bpf *python = python_bpf__open_opts(opts);
	const struct bpf_object *objects[] = { sampler->obj, python->obj, sampler->obj };
	uint32_t before = 0;

	(void)state;
	assert_ptr_equal(kernel_types_opts(), opts);
	for (size_t i = 0; i < ARRAY_LEN(objects) && opts->btf_custom_path; i++) {
		AUTO(free_btf) struct btf *there = NULL;

		kernel_types_give(objects[i]);
		there = btf__parse(opts->btf_custom_path, NULL);
		assert_int_equal(libbpf_get_error(there), 0);
		assert_true(btf__type_cnt(there) > 5 && btf__type_cnt(there) < 5000);
		assert_int_equal(btf__find_by_name(there, "cgroup") > 0, i != 1);
		if (i == 2)
			assert_int_equal(btf__type_cnt(there), before);
		else if (!i)
			before = btf__type_cnt(there);
	}
	sampler_bpf__destroy(sampler);
	python_bpf__destroy(python);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(objects_find_in_it_what_this_kernel_has),
		cmocka_unit_test(only_that_is_in_it),
		cmocka_unit_test(what_is_no_types_is_refused),
		cmocka_unit_test(the_file_takes_the_last_object),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
