import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.Executors;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.exceptions.AlreadyExistsException;
import org.apache.iceberg.exceptions.CommitFailedException;
import org.apache.iceberg.exceptions.NamespaceNotEmptyException;
import org.apache.iceberg.exceptions.NoSuchNamespaceException;
import org.apache.iceberg.exceptions.NoSuchTableException;
import org.apache.iceberg.exceptions.NoSuchViewException;
import org.apache.iceberg.jdbc.JdbcCatalog;
import org.apache.iceberg.rest.CatalogHandlers;
import org.apache.iceberg.rest.RESTSerializers;
import org.apache.iceberg.rest.requests.CreateNamespaceRequest;
import org.apache.iceberg.rest.requests.CreateTableRequest;
import org.apache.iceberg.rest.requests.CreateViewRequest;
import org.apache.iceberg.rest.requests.RegisterTableRequest;
import org.apache.iceberg.rest.requests.RenameTableRequest;
import org.apache.iceberg.rest.requests.UpdateNamespacePropertiesRequest;
import org.apache.iceberg.rest.requests.UpdateTableRequest;
import org.apache.iceberg.shaded.com.fasterxml.jackson.annotation.JsonAutoDetect;
import org.apache.iceberg.shaded.com.fasterxml.jackson.annotation.PropertyAccessor;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.DeserializationFeature;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.PropertyNamingStrategies;

/** The reference's handlers of REST requests over its JDBC catalog; arguments: warehouse, database. Prints its port. */
public class RestCatalog {
  static final ObjectMapper MAPPER = new ObjectMapper();
  static final JdbcCatalog CATALOG = new JdbcCatalog();

  public static void main(String[] args) throws Exception {
    MAPPER.setVisibility(PropertyAccessor.FIELD, JsonAutoDetect.Visibility.ANY);
    MAPPER.configure(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES, false);
    MAPPER.setPropertyNamingStrategy(new PropertyNamingStrategies.KebabCaseStrategy());
    RESTSerializers.registerAll(MAPPER);
    CATALOG.setConf(new Configuration());
    CATALOG.initialize("backend", Map.of(
        "uri", "jdbc:sqlite:" + args[1], "warehouse", args[0], "jdbc.schema-version", "V1",
        "io-impl", "org.apache.iceberg.hadoop.HadoopFileIO"));
    HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
    server.createContext("/", RestCatalog::answer);
    server.setExecutor(Executors.newFixedThreadPool(8));
    server.start();
    System.out.println("port " + server.getAddress().getPort());
    System.in.read();
    System.exit(0);
  }

  static void answer(HttpExchange exchange) {
    int status = 200;
    Object found;
    try {
      found = handle(exchange);
    } catch (Exception e) {
      status = e instanceof NoSuchTableException || e instanceof NoSuchViewException
              || e instanceof NoSuchNamespaceException ? 404
          : e instanceof CommitFailedException || e instanceof AlreadyExistsException
              || e instanceof NamespaceNotEmptyException ? 409
          : e instanceof IllegalArgumentException || e instanceof IllegalStateException ? 400 : 500;
      Map<String, Object> error = new HashMap<>();
      error.put("message", String.valueOf(e.getMessage()));
      error.put("type", e.getClass().getSimpleName());
      error.put("code", status);
      found = Map.of("error", error);
      if (status == 500) e.printStackTrace();
    }
    try (exchange) {
      byte[] data = MAPPER.writeValueAsBytes(found);
      exchange.getResponseHeaders().add("Content-Type", "application/json");
      exchange.sendResponseHeaders(status, data.length);
      exchange.getResponseBody().write(data);
    } catch (Exception e) {
      e.printStackTrace();
    }
  }

  static Object handle(HttpExchange exchange) throws Exception {
    String[] parts = exchange.getRequestURI().getRawPath().substring(1).split("/");
    String query = exchange.getRequestURI().getRawQuery();
    boolean post = exchange.getRequestMethod().equals("POST");
    if (parts[1].equals("config")) {
      return Map.of("defaults", Map.of("view-endpoints-supported", "true"), "overrides", Map.of());
    }
    if (parts.length == 2) {
      Namespace parent = query != null && query.startsWith("parent=") ? namespace(query.substring(7)) : Namespace.empty();
      return post
          ? CatalogHandlers.createNamespace(CATALOG, read(exchange, CreateNamespaceRequest.class))
          : CatalogHandlers.listNamespaces(CATALOG, parent);
    }
    boolean drop = exchange.getRequestMethod().equals("DELETE");
    if (parts[1].equals("views")) {
      CatalogHandlers.renameView(CATALOG, read(exchange, RenameTableRequest.class));
      return Map.of();
    }
    if (parts[1].equals("tables")) {
      CatalogHandlers.renameTable(CATALOG, read(exchange, RenameTableRequest.class));
      return Map.of();
    }
    Namespace space = namespace(parts[2]);
    if (parts.length == 3) {
      if (drop) CatalogHandlers.dropNamespace(CATALOG, space);
      return drop ? Map.of() : CatalogHandlers.loadNamespace(CATALOG, space);
    }
    if (parts[3].equals("properties")) {
      return CatalogHandlers.updateNamespaceProperties(CATALOG, space, read(exchange, UpdateNamespacePropertiesRequest.class));
    }
    if (parts[3].equals("register")) {
      return CatalogHandlers.registerTable(CATALOG, space, read(exchange, RegisterTableRequest.class));
    }
    boolean views = parts[3].equals("views");
    if (parts.length == 4) {
      if (!post) {
        return views ? CatalogHandlers.listViews(CATALOG, space) : CatalogHandlers.listTables(CATALOG, space);
      }
      return views
          ? CatalogHandlers.createView(CATALOG, space, read(exchange, CreateViewRequest.class))
          : CatalogHandlers.createTable(CATALOG, space, read(exchange, CreateTableRequest.class));
    }
    TableIdentifier name = TableIdentifier.of(space, decode(parts[4]));
    if (drop) {
      if (query != null && query.equalsIgnoreCase("purgeRequested=true")) CatalogHandlers.purgeTable(CATALOG, name);
      else if (views) CatalogHandlers.dropView(CATALOG, name);
      else CatalogHandlers.dropTable(CATALOG, name);
      return Map.of();
    }
    if (post && views) {
      return CatalogHandlers.updateView(CATALOG, name, read(exchange, UpdateTableRequest.class));
    }
    if (post) {
      return CatalogHandlers.updateTable(CATALOG, name, read(exchange, UpdateTableRequest.class));
    }
    return views ? CatalogHandlers.loadView(CATALOG, name) : CatalogHandlers.loadTable(CATALOG, name);
  }

  static <T> T read(HttpExchange exchange, Class<T> type) throws Exception {
    return MAPPER.readValue(exchange.getRequestBody(), type);
  }

  static Namespace namespace(String encoded) {
    return Namespace.of(decode(encoded).split("\u001f"));
  }

  static String decode(String text) {
    return URLDecoder.decode(text, StandardCharsets.UTF_8);
  }
}
