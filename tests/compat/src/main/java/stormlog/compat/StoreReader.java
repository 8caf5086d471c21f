package stormlog.compat;
final class StoreReader { interface Use { void with(StoreReader r) throws Exception; } static void on(java.nio.file.Path p, Use u) {} java.util.List<String> messages() {return null;} java.util.List<String> queues() {return null;} String recovered() {return null;} }
