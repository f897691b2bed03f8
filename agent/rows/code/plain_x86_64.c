/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encodings are those of the opcode maps and of tables 2-2 and 2-3 in volume 2 of Intel's manual; a test holds each of them
 * against Zydis.
 */
#include "agent/rows/code/plain_x86_64.h"

#include <string.h>

enum { RSP = 4, RBP = 5, NONE = -1, MAX_BYTES = 15, TWO_BYTE_MAP = 0x0f };
enum { REX_B = 1, REX_X = 2, REX_R = 4, REX_W = 8 };
enum { ADD, OR, ADC, SBB, AND, SUB, XOR, CMP }; /* the operations that are encoded alike */

/* An instruction as far as it was read. */
struct reader {
	const uint8_t *at, *end;
	uint8_t rex; /* 0: there is none */
	bool is_cut;
};

static uint8_t next_u8(struct reader *r)
{
	if (r->at == r->end) {
		r->is_cut = true;
		return 0;
	}
	return *r->at++;
}

static int32_t next_i32(struct reader *r)
{
	int32_t value = 0;

	if (r->end - r->at < (ptrdiff_t)sizeof(value)) {
		r->is_cut = true;
		return 0;
	}
	memcpy(&value, r->at, sizeof(value));
	r->at += sizeof(value);
	return value;
}

static int8_t next_i8(struct reader *r)
{
	return (int8_t)next_u8(r);
}

static void skip(struct reader *r, ptrdiff_t bytes)
{
	if (r->end - r->at < bytes)
		r->is_cut = true;
	else
		r->at += bytes;
}

/* The operands that a ModRM byte tells. */
struct operands {
	uint8_t mod, number; /* @number: of the operation, where the byte tells one instead of a register */
	int8_t reg, rm;	     /* @rm counts if @mod is 3 */
};

static bool is_memory(const struct operands *o)
{
	return o->mod != 3;
}

static void read_operands(struct reader *r, struct plain *p, struct operands *o)
{
	enum { DISP_ALONE = 5, SIB = 4 };
	uint8_t modrm = next_u8(r), rm = modrm & 7, sib;

	o->mod = modrm >> 6;
	o->number = modrm >> 3 & 7;
	o->reg = (int8_t)(o->number | (r->rex & REX_R ? 8 : 0));
	o->rm = (int8_t)(rm | (r->rex & REX_B ? 8 : 0));
	if (!is_memory(o))
		return;
	p->has_memory = true;
	p->base = o->rm;
	if (rm == SIB) {
		sib = next_u8(r);
		p->has_index = (sib >> 3 & 7) != 4 || r->rex & REX_X;
		rm = sib & 7;
		p->base = (int8_t)(rm | (r->rex & REX_B ? 8 : 0));
	}
	if (o->mod == 0 && rm == DISP_ALONE) { /* from rip, or from nothing */
		p->base = NONE;
		skip(r, sizeof(int32_t));
	} else if (o->mod == 1) {
		p->displacement = next_i8(r);
	} else if (o->mod == 2) {
		p->displacement = next_i32(r);
	}
}

/* The register number @reg; of a single byte, without a REX prefix, 4 to 7 are the second bytes of the first four. */
static int8_t byte_reg(const struct reader *r, int8_t reg)
{
	return (int8_t)(!r->rex && reg >= 4 ? reg - 4 : reg);
}

static uint8_t width(const struct reader *r, bool is_byte)
{
	return is_byte ? 1 : r->rex & REX_W ? 8 : 4;
}

/* Something is written to the operand that is a register or memory. */
static void write_rm(const struct reader *r, struct plain *p, const struct operands *o, bool is_byte)
{
	if (is_memory(o)) {
		p->kind = PLAIN_STORE;
		p->bytes = width(r, is_byte);
		return;
	}
	p->kind = PLAIN_WRITE;
	p->to = is_byte ? byte_reg(r, o->rm) : o->rm;
}

static void write_reg(const struct reader *r, struct plain *p, const struct operands *o, bool is_byte)
{
	p->kind = PLAIN_WRITE;
	p->to = is_byte ? byte_reg(r, o->reg) : o->reg;
}

/* A register that equals rsp tells where that is: not plain. */
static bool compares_rsp(const struct operands *o)
{
	return o->reg == RSP || (!is_memory(o) && o->rm == RSP);
}

/* add, or, ... cmp of a register and another one, or memory. */
static bool calculate(struct reader *r, struct plain *p, uint8_t op)
{
	bool is_byte = !(op & 1), is_to_reg = op & 2;
	struct operands o;

	read_operands(r, p, &o);
	if (op >> 3 == CMP)
		return !compares_rsp(&o);
	if (is_to_reg)
		write_reg(r, p, &o, is_byte);
	else
		write_rm(r, p, &o, is_byte);
	return op >> 3 != XOR || p->to != RBP; /* which may be zeroed as a thread begins */
}

/* The same with a number. */
static bool calculate_number(struct reader *r, struct plain *p, uint8_t op)
{
	bool is_byte = op == 0x80;
	struct operands o;
	int64_t number;

	read_operands(r, p, &o);
	number = op == 0x81 ? next_i32(r) : next_i8(r);
	if (o.number == CMP)
		return true;
	write_rm(r, p, &o, is_byte);
	if (p->kind == PLAIN_WRITE && r->rex & REX_W && !is_byte && (o.number == ADD || o.number == SUB)) {
		p->kind = PLAIN_ADD;
		p->number = o.number == ADD ? number : -number;
	}
	return true;
}

/* mov of a register and another one, or memory. */
static bool move(struct reader *r, struct plain *p, uint8_t op)
{
	bool is_byte = !(op & 1), is_to_reg = op & 2, is_whole = !is_byte && r->rex & REX_W;
	struct operands o;

	read_operands(r, p, &o);
	if (is_to_reg)
		write_reg(r, p, &o, is_byte);
	else
		write_rm(r, p, &o, is_byte);
	if (!is_whole)
		return true;
	if (is_memory(&o) && is_to_reg) {
		p->kind = PLAIN_LOAD;
		return true;
	}
	p->from = is_to_reg ? o.rm : o.reg;
	if (!is_memory(&o))
		p->kind = PLAIN_MOVE;
	return p->from != RSP;
}

static bool shift(struct reader *r, struct plain *p, uint8_t op)
{
	enum { UNDEFINED = 6 };
	struct operands o;

	read_operands(r, p, &o);
	if (op < 0xd0)
		(void)next_u8(r);
	write_rm(r, p, &o, !(op & 1));
	return o.number != UNDEFINED;
}

/* test, not, neg; inc, dec. */
static bool single(struct reader *r, struct plain *p, uint8_t op)
{
	bool is_byte = !(op & 1), is_count = op >= 0xfe;
	struct operands o;

	read_operands(r, p, &o);
	if (!is_count && o.number == 0) { /* test */
		skip(r, is_byte ? 1 : 4);
		return true;
	}
	write_rm(r, p, &o, is_byte);
	return is_count ? o.number < 2 : o.number == 2 || o.number == 3;
}

/* A number into a register, or into memory. */
static bool move_number(struct reader *r, struct plain *p, uint8_t op)
{
	struct operands o;

	if (op < 0xc0) {
		bool is_byte = op < 0xb8;
		int8_t reg = (int8_t)((op & 7) | (r->rex & REX_B ? 8 : 0));

		p->kind = PLAIN_WRITE;
		p->to = is_byte ? byte_reg(r, reg) : reg;
		skip(r, width(r, is_byte));
		return true;
	}
	read_operands(r, p, &o);
	skip(r, op == 0xc6 ? 1 : 4);
	write_rm(r, p, &o, op == 0xc6);
	return o.number == 0;
}

/* A register is written out of the other operand, which is behind @number_bytes. */
static bool make_reg(struct reader *r, struct plain *p, uint32_t number_bytes)
{
	struct operands o;

	read_operands(r, p, &o);
	skip(r, number_bytes);
	write_reg(r, p, &o, false);
	return true;
}

static bool load_address(struct reader *r, struct plain *p)
{
	struct operands o;

	read_operands(r, p, &o);
	write_reg(r, p, &o, false);
	if (r->rex & REX_W)
		p->kind = PLAIN_ADDRESS;
	return is_memory(&o);
}

static bool jump(struct plain *p, enum plain_kind kind, int64_t by)
{
	p->kind = kind;
	p->number = by;
	return true;
}

/* Behind 0f. */
static bool decode_second(struct reader *r, struct plain *p)
{
	uint8_t op = next_u8(r);
	struct operands o;

	switch (op) {
	case 0x1f: /* nop */
		read_operands(r, p, &o);
		return o.number == 0;
	case 0x40 ... 0x4f: /* cmov */
	case 0xaf:	    /* imul */
	case 0xb6:	    /* movzx, movsx */
	case 0xb7:
	case 0xbe:
	case 0xbf:
		return make_reg(r, p, 0);
	case 0x80 ... 0x8f:
		return jump(p, PLAIN_MAY_JUMP, next_i32(r));
	case 0x90 ... 0x9f: /* set */
		read_operands(r, p, &o);
		write_rm(r, p, &o, true);
		return o.number == 0;
	default:
		return false;
	}
}

static bool decode(struct reader *r, struct plain *p)
{
	uint8_t op = next_u8(r);
	struct operands o;

	if ((op & 0xf0) == 0x40) {
		r->rex = op;
		op = next_u8(r);
	}
	switch (op) {
	case TWO_BYTE_MAP:
		return decode_second(r, p);
	case 0x63: /* movsxd */
		return make_reg(r, p, 0);
	case 0x69: /* imul */
		return make_reg(r, p, 4);
	case 0x6b:
		return make_reg(r, p, 1);
	case 0x70 ... 0x7f:
		return jump(p, PLAIN_MAY_JUMP, next_i8(r));
	case 0x80:
	case 0x81:
	case 0x83:
		return calculate_number(r, p, op);
	case 0x84: /* test */
	case 0x85:
		read_operands(r, p, &o);
		return true;
	case 0x88 ... 0x8b:
		return move(r, p, op);
	case 0x8d:
		return load_address(r, p);
	case 0x90: /* nop; with a prefix it may be another instruction */
		return !r->rex;
	case 0xb0 ... 0xbf:
	case 0xc6:
	case 0xc7:
		return move_number(r, p, op);
	case 0xc0:
	case 0xc1:
	case 0xd0 ... 0xd3:
		return shift(r, p, op);
	case 0xe8:
	case 0xe9:
		return jump(p, op == 0xe8 ? PLAIN_CALL : PLAIN_JUMP, next_i32(r));
	case 0xeb:
		return jump(p, PLAIN_JUMP, next_i8(r));
	case 0xf6:
	case 0xf7:
	case 0xfe:
	case 0xff:
		return single(r, p, op);
	default:
		return op < 0x40 && (op & 7) < 4 && calculate(r, p, op);
	}
}

bool plain_decode(const uint8_t *code, size_t len_bytes, struct plain *ret)
{
	struct reader r = { .at = code, .end = code + (len_bytes < MAX_BYTES ? len_bytes : MAX_BYTES) };

	*ret = (struct plain){ .kind = PLAIN_NOTHING, .to = NONE, .from = NONE, .base = NONE };
	if (!decode(&r, ret) || r.is_cut || ret->to == RSP)
		return false;
	ret->length_bytes = (uint8_t)(r.at - code);
	return true;
}
