package stormlog.compat;
final class StoreWriter { static void write(java.nio.file.Path p) {} }
