// A user's program in C++17, as small as program.c: built by run and root against the installed package.
// SPDX-License-Identifier: Apache-2.0
#include <everywire/everywire.h>
#include <cstdio>
#include <memory>
#include <string>

namespace {
struct FreeApp {
    void operator()(ew_app *app) const { ew_app_free(app); }
};
}  // namespace

int main() {
    std::unique_ptr<ew_app, FreeApp> app(ew_app_new("cxx"));
    ew_handler_fn greet = [](ew_call *call, void *) { ew_call_donef(call, "{\"greeted\":%q}", EW_STR("Ada")); };
    ew_action_options options = {};
    options.description = "greets";
    if (!app || ew_app_action(app.get(), "/flow/greet", greet, nullptr, &options) != EW_OK) {
        std::fprintf(stderr, "no app\n");
        return 1;
    }
    ew_str name = ew_json_get_str(EW_STR("{\"name\":\"Ada\"}"), "/name", EW_STR("nobody"));
    std::printf("everywire %s greets %s\n", ew_version(), std::string(name.ptr, name.len).c_str());
    return 0;
}
