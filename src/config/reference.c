/*
 * config/reference.c: docs/config.md, made from the tables. See reference.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "config/reference.h"
#include "config/config.h"
#include "wire/texts.h"
#include <string.h>

static const char intro[] =
    "# The configuration file\n"
    "\n"
    "<!-- Made by `everywire check --reference`: change the tables of src/config (config.c, config_jobs.c, "
    "config_tls.c), not this "
    "page. "
    "-->\n"
    "\n"
    "    everywire serve --config everywire.yaml\n"
    "    everywire check everywire.yaml\n"
    "\n"
    "One YAML file names everything that a gateway does, and what a worker of jobs does (`everywire worker --config "
    "everywire.yaml`).\n"
    "[everywire.yaml](everywire.yaml) is an example with comments. RRQ's own file, rrq.toml, is read instead where its "
    "name ends with\n"
    "`.toml`; [jobs.md](jobs.md) tells what its keys mean here.\n"
    "\n"
    "What the command line says wins over the file; listeners, managers, host names and imports of both are added up.\n"
    "`everywire check` tells every problem with its line and column; `serve` tells them, too, and does not start.\n"
    "\n"
    "- `${NAME}` in a value is a variable of the environment, `${NAME:-DEFAULT}` has a default (also for an empty "
    "one),\n"
    "  `$${` is `${` itself. A variable that is not set and has no default is a problem. Keys have no variables.\n"
    "  In `[ ]` and `{ }` such a text needs quotes, because of its braces.\n"
    "- Durations are `500ms`, `2s`, `1m`, `1h`, a bare number is seconds; sizes are bytes, or `64K`, `1M`, `1G`.\n"
    "- Relative paths (`folder`, `cwd`, a plug-in's `path`, the files of `tls`, a program with a slash in its name, "
    "`sqlite:PATH` of "
    "`jobs`) count from\n"
    "  the file's folder.\n"
    "- Values that become JSON (schemas, metadata, a plug-in's `config`) follow YAML 1.2: `true`, `false`, `null` and\n"
    "  numbers without quotes are these, everything else and everything in quotes is a string. No digit is lost.\n"
    "- A file that names programs or plug-ins must belong to the user who runs it, or to root, and nobody else may "
    "write\n"
    "  to it (`chmod go-w`).\n"
    "- Anchors, aliases, merge keys, tags and repeated keys are refused, and so are files over 1 MiB, 32 levels or\n"
    "  100,000 values.\n";

static void print_live(FILE *out) {
    (void)fputs(
        "\n## Changes while it runs\n\n"
        "SIGHUP lets `serve` read the file again. If it has a problem, that is logged and everything stays as it is.\n"
        "Otherwise these count at once, and no running call is dropped:",
        out);
    const char *before = " ";
    for (const ew__field *field = ew__config_group.fields; field->name; field++) {
        if (field->live && field->group) {
            (void)fprintf(out, "%s`%s`", before, field->name);
            before = ", ";
        }
    }
    (void)fputs(". What has changed elsewhere is logged as needing a restart.\n", out);
}

/* The default of a limit is in its table, those of others are words. */
static void print_usual(FILE *out, const ew__field *field) {
    static const struct {
        const char *name;
        uint64_t value;
    } limits[] = {
#define LIMIT_ROW(member, value, text) {#member, value},
        EW_LIMITS_MAP(LIMIT_ROW)
#undef LIMIT_ROW
    };
    char buf[32];
    for (size_t i = 0; field->type == EW__FIELD_LIMIT && i < sizeof limits / sizeof *limits; i++) {
        if (strcmp(limits[i].name, field->name) == 0) {
            ew__limit_text(field->name, limits[i].value, buf, sizeof buf);
            (void)fputs(buf, out);
        }
    }
    (void)fputs(field->usual ? field->usual : "", out);
}

static void print_group(FILE *out, const ew__group *group) {
    char buf[200], help[EW__WIRE_TEXT_MAX];
    (void)fprintf(out, "\n## %s\n\n", group->title);
    if (group->help) {
        (void)fprintf(out, "%s\n\n", group->help);
    }
    (void)fputs("| key | holds | default | what |\n|---|---|---|---|\n", out);
    for (const ew__field *field = group->fields; field->name; field++) {
        (void)fprintf(out, "| `%s` | %s | ", field->name, ew__field_holds(field, buf, sizeof buf));
        print_usual(out, field);
        (void)fprintf(out, "%s | %s |\n", field->required ? "it must be there" : "",
                      ew__wire_text(field->help, 0, 0, help, sizeof help));
    }
    for (const ew__field *field = group->fields; field->name; field++) {
        bool told = field->group == &ew__config_tls_group && group != &ew__config_group; /* once is enough */
        if (field->group && !told) { /* tables do not hold themselves, so this ends */
            print_group(out, field->group);
        }
    }
}

void ew__config_reference(FILE *out) {
    (void)fputs(intro, out);
    print_live(out);
    print_group(out, &ew__config_group);
}
