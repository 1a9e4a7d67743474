#include "ggmlx/core/base64.h"

#include <gtest/gtest.h>

namespace ggmlx {
namespace {

TEST(Base64, VectorsOfRfc4648) {
    const std::pair<std::string, std::string> vectors[] = {{"", ""},
                                                           {"f", "Zg=="},
                                                           {"fo", "Zm8="},
                                                           {"foo", "Zm9v"},
                                                           {"foob", "Zm9vYg=="},
                                                           {"fooba", "Zm9vYmE="},
                                                           {"foobar", "Zm9vYmFy"}};
    for (const auto& [bytes, text] : vectors) {
        EXPECT_EQ(to_base64(bytes), text);
        EXPECT_EQ(from_base64(text), bytes);
        EXPECT_EQ(from_base64(text.substr(0, text.find('='))), bytes) << "without padding";
    }
}

TEST(Base64, EveryByteSurvives) {
    std::string bytes;
    for (int i = 0; i < 512; ++i) bytes += static_cast<char>(i * 7);
    EXPECT_EQ(from_base64(to_base64(bytes)), bytes);
}

TEST(Base64, OtherTextIsRefused) {
    for (const char* text : {"Z", "Zg=", "Z===", "=", "====", "Zm 9", "Zh==", "Zm9v=", "Zm-_", "Zm9v\n"})
        EXPECT_FALSE(from_base64(text).has_value()) << text;
}

}  // namespace
}  // namespace ggmlx
