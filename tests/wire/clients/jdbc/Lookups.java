import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;

/** Prints one line for each thing that a tool on JDBC does first. */
public class Lookups {
    public static void main(String[] arguments) throws SQLException {
        try (Connection connection = DriverManager.getConnection(arguments[0])) {
            try (Statement statement = connection.createStatement()) {
                statement.execute("CREATE TABLE by_jdbc (id int NOT NULL, name text)");
            }
            insert(connection);
            // Beyond five executions the driver prepares on the server and reads binary.
            for (int times = 0; times < 8; times++) {
                System.out.println("row " + find(connection, times));
            }
            System.out.println("pages " + pages(connection));
            metadata(connection.getMetaData());
            try (Statement statement = connection.createStatement()) {
                statement.execute("DROP TABLE by_jdbc");
            }
        }
    }

    private static void insert(Connection connection) throws SQLException {
        String text = "INSERT INTO by_jdbc VALUES (?, ?)";
        try (PreparedStatement statement = connection.prepareStatement(text)) {
            for (int id = 0; id < 10; id++) {
                statement.setInt(1, id);
                statement.setString(2, "n" + id);
                statement.addBatch();
            }
            statement.executeBatch();
        }
    }

    private static String find(Connection connection, int id) throws SQLException {
        String text = "SELECT name FROM by_jdbc WHERE id = ?";
        try (PreparedStatement statement = connection.prepareStatement(text)) {
            statement.setInt(1, id);
            try (ResultSet rows = statement.executeQuery()) {
                rows.next();
                return rows.getString(1);
            }
        }
    }

    private static List<Integer> pages(Connection connection) throws SQLException {
        List<Integer> found = new ArrayList<>();
        connection.setAutoCommit(false);
        try (Statement statement = connection.createStatement()) {
            statement.setFetchSize(3);
            try (ResultSet rows = statement.executeQuery("SELECT id FROM by_jdbc ORDER BY id")) {
                while (rows.next()) {
                    found.add(rows.getInt(1));
                }
            }
        }
        connection.commit();
        connection.setAutoCommit(true);
        return found;
    }

    private static void metadata(DatabaseMetaData metadata) throws SQLException {
        System.out.println("product " + metadata.getDatabaseProductName());
        try (ResultSet tables = metadata.getTables(null, "public", "by_jdbc", null)) {
            while (tables.next()) {
                System.out.println("table " + tables.getString("TABLE_NAME"));
            }
        }
        try (ResultSet columns = metadata.getColumns(null, "public", "by_jdbc", null)) {
            while (columns.next()) {
                System.out.println("column " + columns.getString("COLUMN_NAME")
                    + " " + columns.getString("TYPE_NAME"));
            }
        }
        metadata.getPrimaryKeys(null, "public", "by_jdbc").close();
        metadata.getIndexInfo(null, "public", "by_jdbc", false, true).close();
    }
}
