/*
 * tests/bridge/child.c: an origin that is a program of its own, for what is spoken over standard input and output.
 * SPDX-License-Identifier: Apache-2.0
 */
#include "bridge/pairs.h"

int main(int argc, char **argv) {
    ew_app *app = ew_app_new("origin");
    if (!app)
        return 3;
    add_actions(app, "child");
    return ew_app_main(app, argc, argv);
}
