"""The demo's auction house: a load generator, and views that follow it."""

SOURCE = """CREATE SOURCE IF NOT EXISTS auction_house
    FROM LOAD GENERATOR AUCTION (TICK INTERVAL '200ms') FOR ALL TABLES"""
VIEWS = (
    """CREATE MATERIALIZED VIEW IF NOT EXISTS winning_bids AS
       SELECT a.item, max(b.amount) AS highest, count(*) AS bids
       FROM auctions a JOIN bids b ON b.auction_id = a.id GROUP BY a.item""",
    """CREATE MATERIALIZED VIEW IF NOT EXISTS organization_totals AS
       SELECT o.name, count(*) AS bids, sum(b.amount) AS total, avg(b.amount) AS average
       FROM organizations o JOIN users u ON u.org_id = o.id JOIN bids b ON b.buyer = u.id
       GROUP BY o.name""",
    """CREATE MATERIALIZED VIEW IF NOT EXISTS on_auction AS
       SELECT a.id, a.item, u.name AS seller
       FROM auctions a JOIN users u ON u.id = a.seller WHERE mz_now() < a.end_time""",
)
VIEW_NAMES = ("winning_bids", "organization_totals", "on_auction")
# What has been going on so far.
PROGRESS = "SELECT count(*) FROM bids"
