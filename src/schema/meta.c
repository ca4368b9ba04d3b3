/*
 * schema/meta.c: the schemas of schemas, for those that refer to them. What 2020-12 spreads over vocabularies is one
 * text here: it accepts the same, under the same identifier and the same dynamic anchor.
 *
 * Copyright 2026 The everywire authors. SPDX-License-Identifier: Apache-2.0
 */
#include "base/util.h"
#include "schema/program.h"

#define SUB "{\"$dynamicRef\":\"#meta\"}"
#define SUBS "{\"$ref\":\"#/$defs/schemas\"}"
#define SUB_MAP "{\"$ref\":\"#/$defs/members\"}"
#define COUNT "{\"$ref\":\"#/$defs/count\"}"
#define NAMES "{\"$ref\":\"#/$defs/names\"}"
#define TEXT "{\"type\":\"string\"}"
#define FLAG "{\"type\":\"boolean\"}"
#define NUMBER "{\"type\":\"number\"}"

static const char meta_2020_12[] =
    "{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\","
    "\"$id\":\"https://json-schema.org/draft/2020-12/schema\",\"$dynamicAnchor\":\"meta\","
    "\"type\":[\"object\",\"boolean\"],\"properties\":{"
    "\"$id\":{\"type\":\"string\",\"pattern\":\"^[^#]*#?$\"},\"$schema\":" TEXT ",\"$ref\":" TEXT
    ",\"$dynamicRef\":" TEXT
    ",\"$anchor\":{\"$ref\":\"#/$defs/anchor\"},\"$dynamicAnchor\":{\"$ref\":\"#/$defs/anchor\"},"
    "\"$vocabulary\":{\"type\":\"object\",\"additionalProperties\":" FLAG "},\"$comment\":" TEXT ",\"$defs\":" SUB_MAP
    ","
    "\"prefixItems\":" SUBS ",\"items\":" SUB ",\"contains\":" SUB ",\"additionalProperties\":" SUB ","
    "\"properties\":" SUB_MAP ",\"patternProperties\":" SUB_MAP ",\"dependentSchemas\":" SUB_MAP ","
    "\"propertyNames\":" SUB ",\"if\":" SUB ",\"then\":" SUB ",\"else\":" SUB ",\"allOf\":" SUBS ",\"anyOf\":" SUBS
    ",\"oneOf\":" SUBS ",\"not\":" SUB ",\"unevaluatedItems\":" SUB ",\"unevaluatedProperties\":" SUB ","
    "\"type\":{\"anyOf\":[{\"$ref\":\"#/$defs/type\"},{\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/type\"},"
    "\"minItems\":1,\"uniqueItems\":true}]},\"const\":true,\"enum\":{\"type\":\"array\"},"
    "\"multipleOf\":{\"type\":\"number\",\"exclusiveMinimum\":0},\"maximum\":" NUMBER ",\"exclusiveMaximum\":" NUMBER
    ",\"minimum\":" NUMBER ",\"exclusiveMinimum\":" NUMBER ",\"maxLength\":" COUNT ",\"minLength\":" COUNT
    ",\"pattern\":" TEXT ",\"maxItems\":" COUNT ",\"minItems\":" COUNT ",\"uniqueItems\":" FLAG
    ",\"maxContains\":" COUNT ",\"minContains\":" COUNT ",\"maxProperties\":" COUNT ",\"minProperties\":" COUNT
    ",\"required\":" NAMES ","
    "\"dependentRequired\":{\"type\":\"object\",\"additionalProperties\":" NAMES "},"
    "\"title\":" TEXT ",\"description\":" TEXT ",\"default\":true,\"deprecated\":" FLAG ",\"readOnly\":" FLAG
    ",\"writeOnly\":" FLAG ",\"examples\":{\"type\":\"array\"},\"format\":" TEXT ",\"contentEncoding\":" TEXT
    ",\"contentMediaType\":" TEXT ",\"contentSchema\":" SUB ",\"definitions\":" SUB_MAP ","
    "\"dependencies\":{\"type\":\"object\",\"additionalProperties\":{\"anyOf\":[" SUB "," NAMES "]}}},"
    "\"$defs\":{\"schemas\":{\"type\":\"array\",\"minItems\":1,\"items\":" SUB "},"
    "\"members\":{\"type\":\"object\",\"additionalProperties\":" SUB "},"
    "\"anchor\":{\"type\":\"string\",\"pattern\":\"^[A-Za-z_][-A-Za-z0-9._]*$\"},"
    "\"count\":{\"type\":\"integer\",\"minimum\":0},"
    "\"names\":{\"type\":\"array\",\"items\":" TEXT ",\"uniqueItems\":true},"
    "\"type\":{\"enum\":[\"array\",\"boolean\",\"integer\",\"null\",\"number\",\"object\",\"string\"]}}}";

#undef SUB
#undef SUBS
#undef SUB_MAP
#undef COUNT
#undef NAMES
#define SUB "{\"$ref\":\"#\"}"
#define SUBS "{\"$ref\":\"#/definitions/schemas\"}"
#define SUB_MAP "{\"type\":\"object\",\"additionalProperties\":{\"$ref\":\"#\"}}"
#define COUNT "{\"$ref\":\"#/definitions/count\"}"
#define NAMES "{\"$ref\":\"#/definitions/names\"}"

static const char meta_07[] =
    "{\"$schema\":\"http://json-schema.org/draft-07/schema#\",\"$id\":\"http://json-schema.org/draft-07/schema#\","
    "\"type\":[\"object\",\"boolean\"],\"properties\":{"
    "\"$id\":" TEXT ",\"$schema\":" TEXT ",\"$ref\":" TEXT ",\"$comment\":" TEXT ",\"title\":" TEXT
    ",\"description\":" TEXT ",\"default\":true,\"readOnly\":" FLAG ",\"writeOnly\":" FLAG
    ",\"examples\":{\"type\":\"array\"},"
    "\"multipleOf\":{\"type\":\"number\",\"exclusiveMinimum\":0},\"maximum\":" NUMBER ",\"exclusiveMaximum\":" NUMBER
    ",\"minimum\":" NUMBER ",\"exclusiveMinimum\":" NUMBER ",\"maxLength\":" COUNT ",\"minLength\":" COUNT
    ",\"pattern\":" TEXT ",\"additionalItems\":" SUB ",\"items\":{\"anyOf\":[" SUB "," SUBS "]},\"maxItems\":" COUNT
    ",\"minItems\":" COUNT ",\"uniqueItems\":" FLAG ",\"contains\":" SUB ",\"maxProperties\":" COUNT
    ",\"minProperties\":" COUNT ",\"required\":" NAMES ",\"additionalProperties\":" SUB ",\"definitions\":" SUB_MAP
    ",\"properties\":" SUB_MAP ",\"patternProperties\":" SUB_MAP ","
    "\"dependencies\":{\"type\":\"object\",\"additionalProperties\":{\"anyOf\":[" SUB "," NAMES "]}},"
    "\"propertyNames\":" SUB ",\"const\":true,\"enum\":{\"type\":\"array\"},"
    "\"type\":{\"anyOf\":[{\"$ref\":\"#/definitions/type\"},{\"type\":\"array\",\"items\":{\"$ref\":\"#/definitions/"
    "type\"},"
    "\"minItems\":1,\"uniqueItems\":true}]},\"format\":" TEXT ",\"contentMediaType\":" TEXT ",\"contentEncoding\":" TEXT
    ",\"if\":" SUB ",\"then\":" SUB ",\"else\":" SUB ",\"allOf\":" SUBS ",\"anyOf\":" SUBS ",\"oneOf\":" SUBS
    ",\"not\":" SUB "},"
    "\"definitions\":{\"schemas\":{\"type\":\"array\",\"minItems\":1,\"items\":" SUB "},"
    "\"count\":{\"type\":\"integer\",\"minimum\":0},"
    "\"names\":{\"type\":\"array\",\"items\":" TEXT ",\"uniqueItems\":true},"
    "\"type\":{\"enum\":[\"array\",\"boolean\",\"integer\",\"null\",\"number\",\"object\",\"string\"]}}}";

static const struct {
    const char *uri;
    const char *text;
    size_t len;
    ew__draft draft;
} metas[] = {
    {"https://json-schema.org/draft/2020-12/schema", meta_2020_12, sizeof meta_2020_12 - 1, EW__DRAFT_2020_12},
    {"http://json-schema.org/draft-07/schema", meta_07, sizeof meta_07 - 1, EW__DRAFT_07},
};

ew_str ew__meta_schema(ew_str uri, const char **ret_uri, ew__draft *ret_draft) {
    for (size_t i = 0; i < sizeof metas / sizeof metas[0]; i++) {
        if (ew__str_is(uri, ew_str_from(metas[i].uri))) {
            *ret_uri = metas[i].uri;
            *ret_draft = metas[i].draft;
            return ew__str(metas[i].text, metas[i].len);
        }
    }
    return ew__str(NULL, 0);
}
