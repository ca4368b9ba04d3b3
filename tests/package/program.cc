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
    std::string name(20, '\0');
    size_t length = 0;
    if (ew_json_string(ew_json_get(EW_STR("{\"name\":\"Ada\"}"), "/name"), &name[0], name.size(), &length) != EW_OK) {
        std::fprintf(stderr, "no name\n");
        return 1;
    }
    name.resize(length);
    char json[100];
    int n = ew_json_format(json, sizeof json, "{\"name\":%q,\"length\":%zu,\"ok\":%b,\"share\":%g}", name.c_str(), length,
                           true, 0.5);
    if (n < 0 || std::string(json) != "{\"name\":\"Ada\",\"length\":3,\"ok\":true,\"share\":0.5}" ||
        ew_json_format(json, sizeof json, "%d", 0.5) != EW_EINVAL) {
        std::fprintf(stderr, "cannot write JSON\n");
        return 1;
    }
    std::printf("everywire %s greets %s\n", ew_version(), name.c_str());
    return 0;
}
