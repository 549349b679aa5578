/* SPDX-License-Identifier: MIT */
/* Tests of the text of fields: what valid texts mean, and the position of
 * mistakes in others. */
#include <errno.h>
#include <refrain/loader.h>
#include <stdio.h>
#include <string.h>

#include "loader/fields/fields.h"
#include "suite.h"

static struct fields fields;
static struct error err;

static void parse(const char *text)
{
	int rc = fields_parse(&fields, text, &err);

	ck_assert_msg(rc == 0, "'%s': %s", text, rc < 0 ? err.msg : "");
}

/* Check that the text is refused, at this byte and with this reason. */
static void refused_at(const char *text, unsigned byte, const char *why)
{
	char place[64];
	int rc;

	err.msg[0] = '\0';
	rc = fields_parse(&fields, text, &err);
	ck_assert_msg(rc == -EINVAL, "'%s': %d", text, rc);
	(void)snprintf(place, sizeof(place), "at byte %u (", byte);
	ck_assert_msg(strstr(err.msg, place), "'%s': no '%s' in '%s'", text,
		place, err.msg);
	ck_assert_msg(strstr(err.msg, why), "'%s': no '%s' in '%s'", text, why,
		err.msg);
}

/* Check that `canonical` is the canonical text of `text`, and that it has the
 * same meaning. */
static void means(const char *text, const char *canonical)
{
	static char out[FIELDS_TEXT_MAX];
	struct fields first;

	parse(text);
	fields_text(&fields, out);
	ck_assert_str_eq(out, canonical);
	first = fields;
	parse(canonical);
	ck_assert_uint_eq(fields.count, first.count);
	for (unsigned i = 0; i < first.count; i++)
		ck_assert_int_eq(memcmp(&fields.field[i], &first.field[i],
					 sizeof(first.field[i])),
			0);
}

START_TEST(test_each_kind_has_its_defaults)
{
	parse("image; class; classes; boxes; points; mask; bytes=txt");
	ck_assert_uint_eq(fields.count, 7);
	ck_assert_int_eq(fields.field[0].kind, REFRAIN_KIND_IMAGE);
	ck_assert_int_eq(fields.field[1].kind, REFRAIN_KIND_CLASS);
	ck_assert_int_eq(fields.field[2].kind, REFRAIN_KIND_CLASSES);
	ck_assert_uint_eq(fields.field[2].max, 64);
	ck_assert_int_eq(fields.field[3].kind, REFRAIN_KIND_BOXES);
	ck_assert_uint_eq(fields.field[3].max, 100);
	ck_assert_int_eq(fields.field[3].keep, KEEP_CENTRE);
	ck_assert_double_eq(fields.field[3].min_side, 1);
	ck_assert(!fields.field[3].crowd && !fields.field[3].optional);
	ck_assert_int_eq(fields.field[4].kind, REFRAIN_KIND_POINTS);
	ck_assert_uint_eq(fields.field[4].points, 17);
	ck_assert_uint_eq(fields.field[4].twin[16], 16);
	ck_assert_int_eq(fields.field[5].kind, REFRAIN_KIND_MASK);
	ck_assert_int_eq(fields.field[5].type, REFRAIN_U8);
	ck_assert_uint_eq(fields.field[5].fill, 255);
	ck_assert_int_eq(fields.field[6].kind, REFRAIN_KIND_BYTES);
	ck_assert_str_eq(fields.field[6].member, "txt");
	ck_assert_uint_eq(fields.field[6].max, 4096);
}
END_TEST

START_TEST(test_options_are_set)
{
	parse("image;boxes max=7 keep=visible min_visible=0.25 min_side=2.5 "
	      "crowd optional");
	ck_assert_uint_eq(fields.field[1].max, 7);
	ck_assert_int_eq(fields.field[1].keep, KEEP_VISIBLE);
	ck_assert_double_eq(fields.field[1].min_visible, 0.25);
	ck_assert_double_eq(fields.field[1].min_side, 2.5);
	ck_assert(fields.field[1].crowd && fields.field[1].optional);
	parse("pose=json kind=points points=4 pairs=1-2,4-3");
	ck_assert_str_eq(fields.field[0].name, "pose");
	ck_assert_uint_eq(fields.field[0].points, 4);
	ck_assert_uint_eq(fields.field[0].twin[0], 1);
	ck_assert_uint_eq(fields.field[0].twin[1], 0);
	ck_assert_uint_eq(fields.field[0].twin[2], 3);
	ck_assert_uint_eq(fields.field[0].twin[4], 4);
	parse("mask=seg.png type=i32 fill=65535");
	ck_assert_int_eq(fields.field[0].type, REFRAIN_I32);
	ck_assert_uint_eq(fields.field[0].fill, 65535);
}
END_TEST

START_TEST(test_kind_comes_from_name_option_or_member)
{
	parse("text=txt max=512 optional; left=left.jpg; depth=d.png kind=mask "
	      "; meta=json; label=cls");
	ck_assert_int_eq(fields.field[0].kind, REFRAIN_KIND_BYTES);
	ck_assert_int_eq(fields.field[1].kind, REFRAIN_KIND_IMAGE);
	ck_assert_str_eq(fields.field[1].member, "left.jpg");
	ck_assert_int_eq(fields.field[2].kind, REFRAIN_KIND_MASK);
	ck_assert_int_eq(fields.field[3].kind, REFRAIN_KIND_BYTES);
	ck_assert_int_eq(fields.field[4].kind, REFRAIN_KIND_CLASS);
	refused_at("image; x=y.z", 8, "add kind=");
	refused_at("x kind=picture", 3, "kind must be one of");
	refused_at("x kind", 3, "kind must be one of");
	refused_at("boxes kind=mask", 7, "another kind");
}
END_TEST

START_TEST(test_canonical_text_is_the_same_for_the_same_meaning)
{
	means("image", "image");
	means(" image ;\n boxes  max=100 keep=centre;", "image; boxes");
	means("boxes optional max=7 min_side=2.50",
		"boxes max=7 min_side=2.5 "
		"optional");
	means("boxes min_visible=1e-1 keep=visible",
		"boxes keep=visible min_visible=0.1");
	means("boxes min_visible=0.123456789", "boxes min_visible=0.123457");
	means("text=txt kind=bytes max=4096", "text=txt kind=bytes");
	means("text=txt max=1048576", "text=txt kind=bytes max=1048576");
	means("points pairs=5-4,2-3 points=5", "points points=5 pairs=2-3,4-5");
	means("mask type=u16 fill=0", "mask type=u16 fill=0");
}
END_TEST

START_TEST(test_mistakes_are_named_with_their_place)
{
	refused_at("image; boxes maxx=100", 14, "did you mean max?");
	refused_at("image; boxes fill=3", 14, "boxes has no such option");
	refused_at("image; boxes max", 14, "needs a value");
	refused_at("image; boxes max=", 14, "a whole number from 1 to");
	refused_at("image; boxes max=0", 14, "a whole number from 1 to");
	refused_at("image; boxes max=1.5", 14, "a whole number from 1 to");
	refused_at("image; boxes max=nan", 14, "a whole number");
	refused_at("image; boxes max=2000000", 14, "a whole number");
	refused_at("image; boxes max=5 max=5", 20, "set twice");
	refused_at("image; boxes crowd=1", 14, "takes no value");
	refused_at("boxes keep=center", 7, "one of centre visible");
	refused_at("boxes min_visible=1.5", 7, "from 0 to 1");
	refused_at("boxes min_side=-1", 7, "from 0 to 65536");
	refused_at("mask type=u32", 6, "one of u8 u16 i32");
	refused_at("mask fill=300", 1, "fill must fit in type");
	refused_at("points pairs=1-1", 8, "each once");
	refused_at("points pairs=1-2,2-3", 8, "each once");
	refused_at("points pairs=1-2,", 8, "each once");
	refused_at("points pairs=0-1", 8, "each once");
	refused_at("points pairs=1-65", 8, "each once");
	refused_at("points points=3 pairs=1-4", 1, "does not have");
	refused_at("image; ; boxes", 8, "missing here");
	refused_at(";image", 1, "missing here");
	refused_at("image; image", 8, "another field has this name");
	refused_at("class; label=cls", 8, "another field of classes");
	refused_at("image optional", 1, "cannot be optional");
	refused_at("\xc3\xa4=txt", 1, "the name of a field");
	refused_at("image=../../etc/passwd\x01", 1, "a member has");
	refused_at("=txt", 1, "the name of a field");
	refused_at("image; a_name_that_is_longer_than_31_bytes=txt", 8,
		"up to 31");
	refused_at("a=txt;b=txt;c=txt;d=txt;e=txt;f=txt;g=txt;h=txt;i=txt", 49,
		"more than 8");
	ck_assert_int_eq(fields_parse(&fields, " ", &err), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.msg, "there is none"));
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("fields");
	TCase *tc = case_of(s, "text");

	tcase_add_test(tc, test_each_kind_has_its_defaults);
	tcase_add_test(tc, test_options_are_set);
	tcase_add_test(tc, test_kind_comes_from_name_option_or_member);
	tcase_add_test(
		tc, test_canonical_text_is_the_same_for_the_same_meaning);
	tcase_add_test(tc, test_mistakes_are_named_with_their_place);
	return s;
}

int main(void)
{
	return run_suite(suite());
}
