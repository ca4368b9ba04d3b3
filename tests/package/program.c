/* A user's program, as small as it gets: built by run against the installed package in every way that is offered. */
/* SPDX-License-Identifier: Apache-2.0 */
#include <everywire/everywire.h>
#include <stdio.h>
#include <string.h>

int main(void) {
    ew_str json = EW_STR("{\"name\":\"Ada\"}");
    char text[20];
    ew_str name = {text, 0};
    if (strcmp(ew_version(), EW_VERSION_STRING) != 0) {
        fprintf(stderr, "the header is of %s, the library of %s\n", EW_VERSION_STRING, ew_version());
        return 1;
    }
    if (ew_json_check(json, NULL) != EW_OK ||
        ew_json_string(ew_json_get(json, "/name"), text, sizeof text, &name.len) != EW_OK ||
        !ew_str_eq(name, EW_STR("Ada"))) {
        fprintf(stderr, "the library cannot read JSON\n");
        return 1;
    }
    printf("everywire %s greets %.*s\n", ew_version(), (int)name.len, name.ptr);
    return 0;
}
