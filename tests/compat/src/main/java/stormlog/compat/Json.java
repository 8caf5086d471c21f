package stormlog.compat;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

import com.alibaba.fastjson2.JSON;
import com.alibaba.fastjson2.JSONWriter;

/** JSON objects whose fields come out in the order in which they were put. */
final class Json {
    private Json() {
    }

    static Map<String, Object> object(Object... namesAndValues) {
        Map<String, Object> object = new LinkedHashMap<>();
        for (int i = 0; i < namesAndValues.length; i += 2) {
            object.put((String) namesAndValues[i], namesAndValues[i + 1]);
        }
        return object;
    }

    static List<Object> pairs(Map<String, String> map) {
        List<Object> pairs = new ArrayList<>();
        map.forEach((name, value) -> pairs.add(List.of(name, value)));
        return pairs;
    }

    static String line(Map<String, Object> object) {
        return JSON.toJSONString(object, JSONWriter.Feature.LargeObject);
    }

    static String hex(byte[] bytes) {
        return java.util.HexFormat.of().formatHex(bytes);
    }
}
