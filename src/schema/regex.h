/*
 * schema/regex.h: the regular expressions of ECMA-262 (with its flag u) that can be matched in linear time. A pattern
 * becomes a program of states; a text is read once, with the set of states that it may be in. Not here: what needs
 * going back (\1, lookaround). Nothing is captured: the answer is yes or no.
 */
#ifndef EW_SCHEMA_REGEX_H
#define EW_SCHEMA_REGEX_H

#include "base/mem.h"
#include <everywire/base.h>

typedef struct ew__regex ew__regex;

#define EW__REGEX_STATES_MAX 8192 /* of one pattern, its repetitions written out */
#define EW__REGEX_LENGTH_MAX 8192 /* characters of one pattern */
#define EW__REGEX_NESTING_MAX 64  /* groups in groups */

/* What is wrong with a pattern: one line for people, and the character where it was seen. */
typedef struct ew__regex_problem {
    const char *what;
    size_t at;
} ew__regex_problem;

/*
 * Makes a program in the arena. `pattern` is the inside of a JSON string as it stands in its text. EW_OK; EW_EINVAL: no
 * pattern, or none of those above; EW_ELIMIT: too large; EW_ENOMEM. *problem is set for the two in the middle.
 */
ew_err ew__regex_compile(ew__arena *arena, ew_str pattern, ew__regex_problem *problem, const ew__regex **ret);

/* How many words of memory a match needs. */
size_t ew__regex_words(const ew__regex *regex);

/*
 * Whether the pattern is somewhere in the text, the inside of a JSON string. words: memory for it, not cleared. *steps
 * is what may still be spent; each state that is looked at costs one. EW_OK and *ret, or EW_ELIMIT.
 */
ew_err ew__regex_match(const ew__regex *regex, ew_str text, uint32_t *words, uint64_t *steps, bool *ret);

#endif
